/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that looks at one GPU: who is there, and how busy each kept it. It holds no lock while it is
 * in the driver or in /proc, so nobody waits for a call that hangs.
 */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/process_stat.h"
#include "node/share/share_private.h"

/* Of meters of which nothing is known; as in meter/sensing.c. */
static const double counter_period_s = 0.1;
/* So long the driver may fail to say who is there before that counts. */
static const double failing_most_s = 5.0;
/* Without new samples for so long, nobody keeps the GPU busy. */
static const double uses_most_s = 2.0;

static double now_since_boot_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns for how long a process has run; INFINITY: unknown. */
static double age_s(unsigned long long start_ticks)
{
    long ticks_per_s = sysconf(_SC_CLK_TCK);

    if (start_ticks == 0 || ticks_per_s <= 0)
        return INFINITY;
    return fmax(0.0, now_since_boot_s() - (double)start_ticks / (double)ticks_per_s);
}

/* ---- how busy each kept the GPU ---- */

static void add_use(struct share_uses *uses, const struct device_use_sample *sample, unsigned counts[])
{
    size_t i = 0;

    while (i < uses->count && uses->of[i].pid != sample->pid)
        i++;
    if (i == sizeof uses->of / sizeof uses->of[0])
        return;
    if (i == uses->count) {
        uses->of[uses->count++].pid = sample->pid;
        uses->of[i].percent = 0.0;
        counts[i] = 0;
    }
    uses->of[i].percent += sample->sm_percent;
    counts[i]++;
}

/*
 * A process has a sample only for times in which it kept something busy, so means are over as many
 * samples as the busiest has.
 */
static void take_samples(struct share_uses *uses, const struct device_use_sample *samples, size_t count)
{
    unsigned counts[DEVICE_PROCESSES_AT_ONCE] = {0}, most = 1;

    uses->count = 0;
    uses->taken = mono_now();
    for (size_t i = 0; i < count; i++) {
        add_use(uses, &samples[i], counts);
        if (samples[i].at_us > uses->newest_us)
            uses->newest_us = samples[i].at_us;
    }
    for (size_t i = 0; i < uses->count; i++)
        most = counts[i] > most ? counts[i] : most;
    for (size_t i = 0; i < uses->count; i++)
        uses->of[i].percent /= most;
}

static double use_of(const struct share_uses *uses, pid_t pid)
{
    if (mono_elapsed_s(uses->taken, mono_now()) > uses_most_s)
        return 0.0;
    for (size_t i = 0; i < uses->count; i++) {
        if (uses->of[i].pid == pid)
            return uses->of[i].percent;
    }
    return 0.0;
}

/* ---- who is there ---- */

/* Asks the driver. Returns a code if it does not say. */
static int list(struct share_gpu *gpu, const struct device *device)
{
    size_t count = 0, sample_count = 0;
    int code = device_processes(device, DEVICE_PROCESSES_ALL, gpu->listed, DEVICE_PROCESSES_AT_ONCE, &count);
    enum reading_state state = READING_UNSUPPORTED;

    if (code < 0)
        return code;
    gpu->listed_count = count;
    if (count > 0)
        state = device_use(device, gpu->uses.newest_us, gpu->samples, SHARE_SAMPLES_MAX, &sample_count);
    if (state == READING_OK && sample_count > 0)
        take_samples(&gpu->uses, gpu->samples, sample_count);
    for (size_t i = 0; i < count; i++) {
        const struct device_process *process = &gpu->listed[i];

        gpu->seen[i] = (struct ledger_seen){
            .process = LEDGER_INVISIBLE,
            .use = state == READING_OK ? use_of(&gpu->uses, process->pid) : NAN,
            .together = process->kind == DEVICE_PROCESS_MPS || process->instance != DEVICE_NO_INSTANCE,
            .age_s = INFINITY,
            .memory_bytes = process->memory_bytes,
        };
    }
    return 0;
}

/* A number that the machine gave again is another process. Where the processes are a test's, it is not told.
 */
static void read_starts(struct share_gpu *gpu)
{
    for (size_t i = 0; i < gpu->listed_count; i++) {
        struct process_stat stat;

        gpu->starts[i] = 0;
        if (gpu->share->root == NULL && process_stat_read(gpu->listed[i].pid, &stat))
            gpu->starts[i] = stat.start;
    }
}

/* Looks up a process that is new; with the lock, which it releases meanwhile. */
static void meet(struct share_gpu *gpu, pid_t pid)
{
    struct share *share = gpu->share;
    struct share_process *made;
    struct owner owner;

    pthread_mutex_unlock(&share->group.lock);
    pthread_mutex_lock(&share->look_lock);
    owners_look(share->look, pid, &owner);
    pthread_mutex_unlock(&share->look_lock);
    pthread_mutex_lock(&share->group.lock);
    if (owner.sight != OWNER_SEEN || people_find(share, pid, owner.start_ticks) != NULL)
        return;
    people_make_room(gpu);
    made = people_add(share, &owner);
    if (made == NULL)
        return;
    made->started_unix_ms = clock_real.date(clock_real.state).ns / 1000000;
    if (isfinite(age_s(owner.start_ticks)))
        made->started_unix_ms -= (int64_t)(age_s(owner.start_ticks) * 1e3);
    thread_group_wake(&share->group);
}

static bool is_new(struct share_gpu *gpu, size_t at)
{
    return people_find(gpu->share, gpu->listed[at].pid, gpu->starts[at]) == NULL;
}

/*
 * Returns whether a process with the name of MPS's server is one: root's, or of a user with clients here.
 * Else anybody could have others pay for a process of that name.
 */
static bool serves(const struct share_gpu *gpu, const struct share_process *server)
{
    bool known = server->owner.uid_known;

    for (size_t i = 0; i < gpu->listed_count && known && server->owner.uid != 0; i++) {
        const struct share_process *client = people_find(gpu->share, gpu->listed[i].pid, gpu->starts[i]);

        if (gpu->listed[i].kind == DEVICE_PROCESS_MPS && client != NULL && client != server &&
            client->owner.uid_known && client->owner.uid == server->owner.uid)
            return true;
    }
    return known && server->owner.uid == 0;
}

static void identify(struct share_gpu *gpu)
{
    for (size_t i = 0; i < gpu->listed_count; i++) {
        if (is_new(gpu, i))
            meet(gpu, gpu->listed[i].pid);
    }
    for (size_t i = 0; i < gpu->listed_count; i++) {
        struct share_process *process = people_find(gpu->share, gpu->listed[i].pid, gpu->starts[i]);

        if (process == NULL)
            continue;
        process->ended_unix_ms = 0;
        gpu->seen[i].process = process->number;
        gpu->seen[i].passive = process->passive && serves(gpu, process);
        gpu->seen[i].age_s = age_s(process->owner.start_ticks);
    }
}

/* ---- a look ---- */

static double lag_s(const struct device_info *info, struct mono_time at)
{
    double period_s = info->sensor.counter_period_s;

    return (period_s > 0.0 ? period_s : counter_period_s) + fmax(0.0, mono_elapsed_s(at, mono_now()));
}

static double utilization_of(struct share_gpu *gpu)
{
    struct watch_sample sample;
    struct reading reading;

    if (watch_latest(gpu->share->options.watch, gpu->gpu, &sample, NULL) < 0)
        return NAN;
    reading = sample.reading.values[QUANTITY_UTILIZATION];
    return reading.state == READING_OK ? (double)reading.value * 1e-2 : NAN;
}

static void clear_logged(struct share_gpu *gpu)
{
    for (size_t i = 0; i < gpu->ledger.count; i++) {
        if (gpu->ledger.rows[i].ended_unix_ms == 0)
            gpu->ledger.rows[i].logged = false;
    }
}

/*
 * Gives the watch's total. The first time, and not before the watch has read the GPU, it may be less than
 * what is on record. Returns false if there is none yet.
 */
static bool look_at_total(struct share_gpu *gpu, struct watch_device *out_device)
{
    struct watch *watch = gpu->share->options.watch;

    watch_look(watch, gpu->gpu, out_device);
    if (out_device->total.at.ns == 0)
        return false;
    if (gpu->ledger.at.ns != 0)
        return true;
    watch_raise(watch, gpu->gpu, gpu->ledger.energy_uj);
    watch_look(watch, gpu->gpu, out_device);
    return true;
}

static void take(struct share_gpu *gpu, bool listed)
{
    struct watch_device device;
    struct ledger_look look = {.listed = listed, .count = listed ? gpu->listed_count : 0, .seen = gpu->seen};

    if (!look_at_total(gpu, &device))
        return;
    gpu->info = device.info;
    look.at = device.total.at;
    look.unix_ms = clock_real.date(clock_real.state).ns / 1000000;
    look.energy_uj = device.total.energy_uj;
    look.unobserved_uj = device.total.unobserved_uj;
    look.utilization = utilization_of(gpu);
    look.lag_s = lag_s(&device.info, device.total.at);
    look.gain = device.info.sensor.gain_error;
    if (listed)
        identify(gpu);
    ledger_take(&gpu->ledger, &look);
    clear_logged(gpu);
    series_settle(gpu, false);
    gpu->counted_unix_ms = look.unix_ms;
}

/* A driver that does not say who is there may have a bad moment; what was drawn waits for the next look. */
static void note_failure(struct share_gpu *gpu, int code)
{
    if (gpu->failing.ns == 0)
        gpu->failing = mono_now();
    if (code == FLY_EUNSUPPORTED || mono_elapsed_s(gpu->failing, mono_now()) > failing_most_s)
        take(gpu, false);
}

/* With the lock, which it releases while it is in the driver. */
static void look(struct share_gpu *gpu)
{
    struct share *share = gpu->share;
    const struct device *device;
    int code;

    pthread_mutex_unlock(&share->group.lock);
    if (watch_borrow(share->options.watch, gpu->gpu, &device, NULL) < 0) {
        pthread_mutex_lock(&share->group.lock);
        return;
    }
    code = list(gpu, device);
    watch_give_back(share->options.watch, gpu->gpu);
    if (code == 0)
        read_starts(gpu);
    pthread_mutex_lock(&share->group.lock);
    if (share->group.closing)
        return;
    if (code < 0) {
        note_failure(gpu, code);
        return;
    }
    gpu->failing.ns = 0;
    take(gpu, true);
}

void share_eye(void *state)
{
    struct share_gpu *gpu = state;
    struct share *share = gpu->share;
    struct mono_time due = mono_now();

    pthread_mutex_lock(&share->group.lock);
    while (!share->group.closing) {
        if (mono_now().ns < due.ns) {
            (void)thread_group_wait(&share->group, due);
            continue;
        }
        look(gpu);
        due = mono_after_s(due, share->options.poll_s);
        if (due.ns < mono_now().ns)
            due = mono_after_s(mono_now(), share->options.poll_s);
    }
    pthread_mutex_unlock(&share->group.lock);
}

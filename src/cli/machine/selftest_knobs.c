/* SPDX-License-Identifier: Apache-2.0 */
/* What the self-test does to devices: the load, the limits under it, and the process that is killed while it
 * holds limits down. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/machine/selftest_cli.h"
#include "cli/options/knob_options.h"
#include "knob/repair.h"

/* ---- the load ---- */

/* Returns why our own load may not run on the device, or NULL. */
static const char *obstacle(const struct selftest *test, const struct device_info *info, const char *backend)
{
    if (cli_choice(test->call, "load") != 0)
        return "no load was asked for";
    if (info->kind != DEVICE_GPU || strcmp(backend, "nvml") != 0)
        return "only NVIDIA GPUs are loaded";
    /* The machine's CUDA driver might know a real GPU at the same place on the bus. */
    if (info->emulated && cli_text(test->call, "cuda") == NULL)
        return "an emulated GPU is loaded only through a library that --cuda names";
    return info->pci[0] == '\0' ? "the GPU's place on the bus is not known" : NULL;
}

static void start_load(const struct selftest *test, const struct device *device, double duration_max_s,
                       struct selftest_load *load)
{
    struct cuda_load_options cuda = {.library_path = cli_text(test->call, "cuda"),
                                     .pci = device->info.pci,
                                     .duration_max_s = duration_max_s};
    const char *why = obstacle(test, &device->info, device->backend->name);
    struct fly_error error = {0};

    if (why == NULL && cuda_load_start(&cuda, &load->load, &error) == 0)
        load->started = true;
    else
        snprintf(load->text, sizeof load->text, "%s", why != NULL ? why : error.text);
}

void selftest_loads_start(const struct selftest *test, const bool *chosen, double duration_max_s,
                          struct selftest_load *loads)
{
    for (size_t i = 0; i < test->devices.count; i++) {
        if (chosen == NULL || chosen[i])
            start_load(test, &test->devices.devices[i], duration_max_s, &loads[i]);
    }
}

void selftest_loads_stop(const struct selftest *test, struct selftest_load *loads)
{
    for (size_t i = 0; i < test->devices.count; i++) {
        struct fly_error error = {0};

        if (loads[i].load.child > 0 && cuda_load_stop(&loads[i].load, &error) < 0)
            snprintf(loads[i].text, sizeof loads[i].text, "%s", error.text);
    }
}

/* ---- a process that is killed ---- */

/*
 * The process to kill is this program again, in a process group of its own, so that it opens the
 * driver anew and no signal from the terminal reaches it.
 */
/* The longest wait until the process has set its limits, and until a limit is back. */
static const double set_max_s = 30, back_max_s = 10, look_s = 0.002;
/* The process restores the limits by itself if nobody kills it. */
#define TIME_FOR_IT "45s"
enum { WORDS_MAX = 20, WORDS_BYTES = 16384, LIST_MAX = 1024, SHARE_MAX = 16, TALK_MAX = 256, PERCENT = 100 };

/* A command line; ends with NULL. */
struct words {
    char *words[WORDS_MAX + 1];
    size_t count, used;
    char text[WORDS_BYTES];
};

/* The limits of a GPU that takes part; all 0 for another device. */
struct limits {
    int64_t before_mw, lowest_mw, highest_mw;
    int64_t set_mw; /* set by the process */
};

struct victim {
    struct selftest *test;
    pid_t pid;
    int talk; /* read end of its stderr */
    struct limits limits[DEVICES_MAX];
};

/* Returns 0 if it is not known. */
static int64_t read_mw(const struct victim *victim, size_t device, enum quantity quantity)
{
    struct device_reading reading;

    device_read(&victim->test->devices.devices[device], &clock_real, QUANTITY_BIT(quantity), &reading);
    return reading.values[quantity].state == READING_OK ? reading.values[quantity].value : 0;
}

/* Reads the limits of the GPUs that take part. Returns false if one is not known. */
static bool read_limits(struct victim *victim)
{
    for (size_t i = 0; i < victim->test->devices.count; i++) {
        struct limits *limits = &victim->limits[i];

        if (!victim->test->results[i].turning.tried)
            continue;
        *limits = (struct limits){.before_mw = read_mw(victim, i, QUANTITY_POWER_LIMIT),
                                  .lowest_mw = read_mw(victim, i, QUANTITY_POWER_LIMIT_MIN),
                                  .highest_mw = read_mw(victim, i, QUANTITY_POWER_LIMIT_MAX)};
        if (limits->before_mw <= 0 || limits->lowest_mw <= 0 || limits->highest_mw <= 0)
            return false;
    }
    return true;
}

/* Returns whether that share of the highest limit is in every GPU's range, and changes every limit. */
static bool try_share(struct victim *victim, int percent)
{
    for (size_t i = 0; i < victim->test->devices.count; i++) {
        struct limits *limits = &victim->limits[i];

        if (!victim->test->results[i].turning.tried)
            continue;
        limits->set_mw = llround((double)limits->highest_mw * percent / PERCENT / 1e3) * 1000;
        if (limits->set_mw < limits->lowest_mw || limits->set_mw == limits->before_mw)
            return false;
    }
    return true;
}

/* Returns a share in the middle of what every GPU accepts, in percent; 0: there is none. */
static int find_share(struct victim *victim)
{
    int lowest = 1, middle;

    while (lowest < PERCENT && !try_share(victim, lowest))
        lowest++;
    middle = (lowest + PERCENT) / 2;
    while (middle >= lowest && !try_share(victim, middle))
        middle--;
    return middle >= lowest && middle < PERCENT ? middle : 0;
}

static void add_word(struct words *words, const char *word)
{
    size_t bytes = strlen(word) + 1;

    if (words->count == WORDS_MAX || bytes > sizeof words->text - words->used)
        return;
    memcpy(words->text + words->used, word, bytes);
    words->words[words->count++] = words->text + words->used;
    words->used += bytes;
}

/* Adds "0,2" as --gpus takes it. */
static void add_gpus(const struct victim *victim, struct words *words)
{
    char list[LIST_MAX] = "";
    size_t length = 0;

    for (size_t i = 0; i < victim->test->devices.count && length < LIST_MAX; i++) {
        if (victim->test->results[i].turning.tried)
            length += (size_t)snprintf(list + length, LIST_MAX - length, "%s%u", length > 0 ? "," : "",
                                       victim->test->devices.devices[i].info.index);
    }
    add_word(words, list);
}

/* Adds the options that say where devices are found, as this command got them. */
static void add_options(const struct cli_call *call, struct words *words)
{
    static const struct {
        const char *name, *option;
    } options[] = {{"nvml", "--nvml"}, {"amdsmi", "--amdsmi"}, {"sysfs-root", "--sysfs-root"}};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (cli_source(call, options[i].name) != CLI_OPTION)
            continue;
        add_word(words, options[i].option);
        add_word(words, cli_text(call, options[i].name));
    }
}

/*
 * Starts it with a pipe as its stderr, no other stream, no blocked signal and a group of its own.
 * Returns 0 or an errno.
 */
static int spawn(struct victim *victim, char *const *words)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int talk[2], cause;

    if (pipe2(talk, O_CLOEXEC) < 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, talk[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &victim->test->stop.before);
    cause = posix_spawn(&victim->pid, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(talk[1]);
    victim->talk = talk[0];
    if (cause != 0)
        close(talk[0]);
    return cause;
}

static int start_holder(struct victim *victim, int percent)
{
    static const char *const begin[] = {"/proc/self/exe", "power", "set", "--quiet", "--for", TIME_FOR_IT};
    struct words words = {.count = 0};
    char share[SHARE_MAX];

    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        add_word(&words, begin[i]);
    snprintf(share, sizeof share, "%d%%", percent);
    add_word(&words, share);
    add_word(&words, "-i");
    add_gpus(victim, &words);
    add_options(victim->test->call, &words);
    return spawn(victim, words.words);
}

__attribute__((format(printf, 2, 3))) static void say_not_killed(const struct victim *victim,
                                                                 const char *format, ...)
{
    char text[sizeof victim->test->results->turning.not_killed];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < victim->test->devices.count; i++)
        snprintf(victim->test->results[i].turning.not_killed, sizeof text, "%s", text);
}

/* Returns whether each limit is at the value that the process sets. */
static bool all_set(const struct victim *victim)
{
    for (size_t i = 0; i < victim->test->devices.count; i++) {
        if (victim->limits[i].set_mw > 0 &&
            read_mw(victim, i, QUANTITY_POWER_LIMIT) != victim->limits[i].set_mw)
            return false;
    }
    return true;
}

/* Reads the last line that it wrote before it ended. */
static void read_talk(const struct victim *victim, char talk[TALK_MAX])
{
    ssize_t length = read(victim->talk, talk, TALK_MAX - 1);
    char *end;

    talk[length > 0 ? length : 0] = '\0';
    end = strchr(talk, '\n');
    if (end != NULL)
        *end = '\0';
}

static bool wait_until_set(struct victim *victim)
{
    struct mono_time end = mono_after_s(mono_now(), set_max_s), next;
    char talk[TALK_MAX];

    while (!all_set(victim)) {
        if (waitpid(victim->pid, NULL, WNOHANG) == victim->pid) {
            victim->pid = 0;
            read_talk(victim, talk);
            say_not_killed(victim, "the process that was to set it ended: %s", talk);
            return false;
        }
        next = mono_after_s(mono_now(), look_s);
        if (next.ns >= end.ns || stop_signals_wait(&victim->test->stop, next)) {
            say_not_killed(victim, "the process that was to set it did not within %.0f s", set_max_s);
            return false;
        }
    }
    return true;
}

/* Watches from now on until every limit is back. */
static void watch(struct victim *victim)
{
    struct mono_time start = mono_now(), now = start;
    size_t missing;

    do {
        missing = 0;
        for (size_t i = 0; i < victim->test->devices.count; i++) {
            struct selftest_turning *turning = &victim->test->results[i].turning;

            if (victim->limits[i].set_mw == 0 || isfinite(turning->back_s))
                continue;
            if (read_mw(victim, i, QUANTITY_POWER_LIMIT) == victim->limits[i].before_mw)
                turning->back_s = mono_elapsed_s(start, mono_now());
            else
                missing++;
        }
        clock_real.sleep_until(clock_real.state, mono_after_s(now, look_s));
        now = mono_now();
    } while (missing > 0 && mono_elapsed_s(start, now) < back_max_s);
}

static void kill_and_watch(struct victim *victim)
{
    for (size_t i = 0; i < victim->test->devices.count; i++) {
        struct selftest_turning *turning = &victim->test->results[i].turning;

        turning->killed = victim->limits[i].set_mw > 0;
        turning->killed_limit_w = (double)victim->limits[i].set_mw * 1e-3;
        turning->back_s = NAN;
        turning->back_max_s = back_max_s;
    }
    kill(victim->pid, SIGKILL);
    watch(victim);
}

/*
 * Starts `flyball power set` on the GPUs whose turnings are `tried`, kills it with SIGKILL when
 * their limits are set, and watches whether they return. Fills in the results' turnings; never
 * fails, and says why something could not be tried. Nobody else may hold their knobs meanwhile.
 */
static void kill_holder(struct selftest *test)
{
    static struct victim victim; /* large */
    int percent, cause;

    victim = (struct victim){.test = test};
    percent = read_limits(&victim) ? find_share(&victim) : 0;
    if (percent == 0) {
        say_not_killed(&victim, "there is no share of the highest limit to set on all GPUs");
        return;
    }
    cause = start_holder(&victim, percent);
    if (cause != 0) {
        say_not_killed(&victim, "no process could be started to set it: %s", strerror(cause));
        return;
    }
    if (wait_until_set(&victim))
        kill_and_watch(&victim);
    if (victim.pid > 0) {
        kill(victim.pid, SIGKILL);
        while (waitpid(victim.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(victim.talk);
}

/* ---- limits, one after the other ---- */

static const char program_name[] = "flyball selftest";

/* Time for readings to follow a new limit, and for a mean to be measured. */
static const double settle_least_s = 0.4, window_least_s = 0.5;
static const double check_s = 0.4; /* between two checks of the guard and of what others set */

/* Large; there is only one. */
static struct turning {
    struct selftest *test;
    struct knob *knob;
    const struct device *gpus[DEVICES_MAX];
    size_t places[DEVICES_MAX]; /* places of the GPUs among the devices */
    size_t count;
    bool chosen[DEVICES_MAX]; /* devices that take part */
    struct selftest_load loads[DEVICES_MAX];
    struct mono_time check_due;
    struct fly_error lost; /* code < 0: the limits are no longer under our control */
} turning;

static double limit_w(const struct device *gpu)
{
    struct device_reading reading;
    const struct reading *limit = &reading.values[QUANTITY_POWER_LIMIT];

    device_read(gpu, &clock_real, QUANTITY_BIT(QUANTITY_POWER_LIMIT), &reading);
    return limit->state == READING_OK ? (double)limit->value * 1e-3 : NAN;
}

static struct selftest_turning *turning_of(size_t gpu)
{
    return &turning.test->results[turning.places[gpu]].turning;
}

static void list_gpus(void)
{
    turning.count = 0;
    for (size_t i = 0; i < turning.test->devices.count; i++) {
        if (turning.test->devices.devices[i].info.kind != DEVICE_GPU)
            continue;
        turning.gpus[turning.count] = &turning.test->devices.devices[i];
        turning.places[turning.count++] = i;
    }
    for (size_t i = 0; i < turning.count; i++)
        *turning_of(i) = (struct selftest_turning){
            .wanted = true, .before_w = limit_w(turning.gpus[i]), .after_w = NAN, .back_s = NAN};
}

/* Excludes one GPU; refuse_all excludes all that take part. Without permission all need the same remedy. */
static void refuse(size_t gpu, const struct fly_error *why)
{
    struct selftest_turning *of = turning_of(gpu);

    of->tried = false;
    turning.chosen[turning.places[gpu]] = false;
    if (why->code == FLY_EPERM && geteuid() != 0)
        snprintf(of->why_not, sizeof of->why_not,
                 "its driver lets root alone set it; run 'sudo flyball selftest --turn-knobs'");
    else
        snprintf(of->why_not, sizeof of->why_not, "%.300s", why->text);
}

static void refuse_all(const struct fly_error *why)
{
    for (size_t i = 0; i < turning.count; i++) {
        if (turning_of(i)->tried)
            refuse(i, why);
    }
}

/* Returns whether any GPU takes part. */
static bool open_knobs(void)
{
    char readonly[CLI_READONLY_MAX];
    struct knob_options options = cli_knob_options(turning.test->call, program_name, readonly);
    struct fly_error error = {.code = 0};
    bool any = false;

    for (size_t i = 0; i < turning.count; i++)
        turning_of(i)->tried = true;
    if (knob_open(&options, turning.gpus, turning.count, &turning.knob, &error) < 0) {
        refuse_all(&error);
        return false;
    }
    for (size_t i = 0; i < turning.count; i++) {
        if (knob_may_turn(turning.knob, i, &error) < 0)
            refuse(i, &error);
        turning.chosen[turning.places[i]] = turning_of(i)->tried;
        any = any || turning_of(i)->tried;
    }
    return any;
}

/* Returns a level's limit: equal steps from the highest limit down to the lowest, whole watts in between. */
static int64_t level_mw(const struct device *gpu, int level)
{
    struct device_reading reading;
    const struct reading *lowest = &reading.values[QUANTITY_POWER_LIMIT_MIN];
    const struct reading *highest = &reading.values[QUANTITY_POWER_LIMIT_MAX];

    device_read(gpu, &clock_real,
                QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX), &reading);
    if (lowest->state != READING_OK || highest->state != READING_OK)
        return 0;
    if (level == SELFTEST_LEVELS - 1)
        return lowest->value;
    return highest->value - (highest->value - lowest->value) * level / (SELFTEST_LEVELS - 1) / 1000 * 1000;
}

static int set_level(void *data, int level, struct fly_error *out_error)
{
    int64_t limits_mw[DEVICES_MAX] = {0};

    (void)data;
    for (size_t i = 0; i < turning.count; i++) {
        if (turning_of(i)->tried)
            limits_mw[i] = level_mw(turning.gpus[i], level);
    }
    return knob_set(turning.knob, limits_mw, out_error);
}

static bool work_of(void *data, size_t device, double *out_work)
{
    uint64_t steps;

    (void)data;
    if (!cuda_load_steps(&turning.loads[device].load, &steps))
        return false;
    *out_work = (double)steps;
    return true;
}

static bool go_on(void *data)
{
    struct mono_time now = mono_now();

    (void)data;
    if (now.ns >= turning.check_due.ns) {
        turning.check_due = mono_after_s(now, check_s);
        if (knob_check(turning.knob, &turning.lost) < 0)
            return false;
    }
    return !stop_signals_wait(&turning.test->stop, now);
}

/* Measures the levels. If anything but a signal ends them early, that is a finding and no error. */
static int measure_levels(struct fly_error *out_error)
{
    struct selftest *test = turning.test;
    struct selftest_options options = {
        .devices = &test->devices,
        .settle_s = fmax(test->duration_s / 4, settle_least_s),
        .duration_s = fmax(test->duration_s, window_least_s),
        .poll_s = test->poll_s,
        .set = set_level,
        .work = work_of,
        .go_on = go_on,
    };
    struct fly_error error = {.code = 0};
    int code;

    selftest_loads_start(test, turning.chosen,
                         SELFTEST_LEVELS * (2 * test->duration_s + settle_least_s + window_least_s) + 60,
                         turning.loads);
    code = selftest_turn(&options, test->results, &error);
    selftest_loads_stop(test, turning.loads);
    if (code == 0)
        return 0;
    if (test->stop.stopped || code == FLY_ENOMEM)
        return error_set(out_error, code, "%s", error.text);
    refuse_all(turning.lost.code < 0 ? &turning.lost : &error);
    return 0;
}

static bool any_tried(void)
{
    bool any = false;

    for (size_t i = 0; i < turning.count; i++)
        any = any || turning_of(i)->tried;
    return any;
}

/* Restores the limits; a warning names those that could not be restored. */
static void close_knobs(void)
{
    static struct knob_report reports[DEVICES_MAX];

    if (turning.knob == NULL)
        return;
    knob_close(turning.knob, reports);
    turning.knob = NULL;
    for (size_t i = 0; i < turning.count; i++) {
        if (reports[i].state == KNOB_STUCK)
            cli_warn(turning.test->call, "%s; 'flyball power restore' tries again", reports[i].error.text);
    }
}

/* Restores what a killed process may have left in spite of its guard, and records the final limits. */
static void end(void)
{
    static struct repair repairs[DEVICES_MAX];
    char readonly[CLI_READONLY_MAX];
    struct knob_options options = cli_knob_options(turning.test->call, program_name, readonly);

    if (knob_repair_is_due(&options))
        knob_repair(&options, &turning.test->devices, false, repairs, DEVICES_MAX, NULL);
    for (size_t i = 0; i < turning.count; i++)
        turning_of(i)->after_w = limit_w(turning.gpus[i]);
}

int selftest_knobs_run(struct selftest *test, struct fly_error *out_error)
{
    int code = 0;

    turning = (struct turning){.test = test};
    list_gpus();
    if (turning.count > 0 && open_knobs()) {
        cli_note(test->call, "turning power limits, %d of each GPU; what stood before is put back",
                 SELFTEST_LEVELS);
        code = measure_levels(out_error);
    }
    close_knobs();
    if (code == 0 && any_tried()) {
        cli_note(test->call, "killing a process that holds limits down");
        kill_holder(test);
    }
    end();
    for (size_t i = 0; i < turning.count; i++) {
        if (!turning_of(i)->tried)
            cli_warn(test->call, "the power limit of GPU %u is not turned: %s", turning.gpus[i]->info.index,
                     turning_of(i)->why_not);
    }
    return code;
}

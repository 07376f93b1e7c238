/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flyballd itself costs when nobody asks it anything: the watch of eight GPUs ten times a second and the
 * account of who uses them, over hours that pass faster. Nothing here passes or fails.
 *
 *     bench_watch [HOURS [SPEED [DELAYED_HOURS [DELAYED_SPEED]]]]
 *
 * All threads see a clock that runs SPEED times as fast, and wait by it. The driver is made up. It answers at
 * once; in the second run each of its calls takes 50 us and its list of processes 2 ms, by the real clock.
 * Counted is all processor time of this process, less what its threads spend inside the made-up driver: its
 * work, and falling asleep and waking up for its waits. On a busy machine readings come late and are left
 * out, so the own time is told for as many readings as were wanted. Memory is what became resident since
 * before the watch was opened, at its most.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/device_processes.h"
#include "node/share/share.h"
#include "node/watch/watch.h"

enum { GPUS = 8, PROGRAMS = 16, CALLS_OF_A_READING = 14, NS_PER_S = 1000000000 };
static const double poll_s = 0.1, look_s = 0.5, save_s = 10.0, change_s = 60.0, power_w = 300.0;

__attribute__((noreturn)) static void die(const char *text)
{
    fprintf(stderr, "bench_watch: %s\n", text);
    exit(1);
}

/* ---- a clock that runs faster, for all of this program ---- */

static struct {
    int (*gettime)(clockid_t id, struct timespec *out_time);
    int (*timedwait)(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until);
    double speed; /* 0: as usual */
    struct timespec start[CLOCK_TAI];
} fast;

static double between_s(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) * 1e-9;
}

static struct timespec after(const struct timespec *start, double passed_s)
{
    double whole = floor(passed_s), nanoseconds = (double)start->tv_nsec + (passed_s - whole) * NS_PER_S;
    time_t carried = nanoseconds >= NS_PER_S;

    return (struct timespec){.tv_sec = start->tv_sec + (time_t)whole + carried,
                             .tv_nsec = (long)nanoseconds - carried * NS_PER_S};
}

static bool is_fast(clockid_t id)
{
    return fast.speed > 0.0 && (id == CLOCK_REALTIME || id == CLOCK_MONOTONIC || id == CLOCK_BOOTTIME);
}

/*
 * In place of the C library's, for everything in this program; its parameters have reserved names.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *out_time)
{
    int code = fast.gettime != NULL ? fast.gettime(id, out_time) : -1;

    if (code == 0 && is_fast(id))
        *out_time = after(&fast.start[id], between_s(&fast.start[id], out_time) * fast.speed);
    return code;
}

__attribute__((visibility("default"))) int pthread_cond_timedwait(pthread_cond_t *condition,
                                                                  pthread_mutex_t *lock,
                                                                  const struct timespec *until)
{
    struct timespec real = *until;

    if (fast.speed > 0.0)
        real = after(&fast.start[CLOCK_MONOTONIC],
                     fmax(0.0, between_s(&fast.start[CLOCK_MONOTONIC], until)) / fast.speed);
    return fast.timedwait(condition, lock, &real);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static void run_fast(double speed)
{
    static const clockid_t ids[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};

    *(void **)&fast.gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&fast.timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (fast.timedwait == NULL)
        *(void **)&fast.timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (fast.gettime == NULL || fast.timedwait == NULL)
        die("the C library's clock is not found");
    fast.speed = 0.0;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        fast.gettime(ids[i], &fast.start[ids[i]]);
    fast.speed = speed;
}

static double now_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double real_s(void)
{
    struct timespec now = {0};

    fast.gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- a driver ---- */

static struct {
    double call_s, list_s;                 /* what a call takes, by the real clock */
    atomic_ulong readings, lists, used_ns; /* used_ns: processor time inside */
    _Atomic pid_t programs[PROGRAMS];      /* two on each GPU */
} driver;

static void wait_s(double seconds)
{
    const struct timespec time = {.tv_nsec = (long)(seconds * NS_PER_S)};

    if (seconds > 0.0)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static unsigned long thread_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (unsigned long)used.tv_sec * NS_PER_S + (unsigned long)used.tv_nsec;
}

static void read_gpu(const struct device *device, quantity_set wanted, struct reading *values)
{
    unsigned long begin_ns = thread_ns();
    static const struct {
        enum quantity quantity;
        int64_t value;
    } rows[] = {{QUANTITY_POWER_INSTANT, 300000},
                {QUANTITY_POWER_AVERAGE, 300000},
                {QUANTITY_POWER_LIMIT, 400000},
                {QUANTITY_POWER_LIMIT_ENFORCED, 400000},
                {QUANTITY_POWER_LIMIT_DEFAULT, 400000},
                {QUANTITY_POWER_LIMIT_MIN, 100000},
                {QUANTITY_POWER_LIMIT_MAX, 400000},
                {QUANTITY_CLOCK_GPU, 1410},
                {QUANTITY_CLOCK_MEMORY, 1593},
                {QUANTITY_TEMPERATURE, 50},
                {QUANTITY_UTILIZATION, 100},
                {QUANTITY_UTILIZATION_MEMORY, 30},
                {QUANTITY_THROTTLE, 0}};

    (void)device;
    atomic_fetch_add(&driver.readings, 1);
    for (int i = 0; i < CALLS_OF_A_READING; i++)
        wait_s(driver.call_s);
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((wanted & QUANTITY_BIT(rows[i].quantity)) != 0)
            values[rows[i].quantity] = (struct reading){.value = rows[i].value, .state = READING_OK};
    }
    values[QUANTITY_ENERGY] =
        (struct reading){.value = (int64_t)(now_s() * power_w * 1e6), .state = READING_OK};
    atomic_fetch_add(&driver.used_ns, thread_ns() - begin_ns);
}

static int list_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                          size_t maximum, size_t *out_count)
{
    unsigned long begin_ns = thread_ns();

    atomic_fetch_add(&driver.lists, 1);
    wait_s(driver.list_s);
    atomic_fetch_add(&driver.used_ns, thread_ns() - begin_ns);
    *out_count = 0;
    for (size_t i = 0; i < 2 && i < maximum && (kinds & DEVICE_PROCESSES_COMPUTING) != 0; i++)
        processes[(*out_count)++] =
            (struct device_process){.pid = atomic_load(&driver.programs[2 * device->info.index + i]),
                                    .memory_bytes = 1 << 30,
                                    .kind = DEVICE_PROCESS_COMPUTE,
                                    .instance = DEVICE_NO_INSTANCE};
    return 0;
}

static enum reading_state sample_use(const struct device *device, int64_t since_us,
                                     struct device_use_sample *samples, size_t maximum, size_t *out_count)
{
    unsigned long begin_ns = thread_ns();
    struct timespec date = {0};
    int64_t at_us;

    clock_gettime(CLOCK_REALTIME, &date);
    at_us = (int64_t)date.tv_sec * 1000000 + date.tv_nsec / 1000;
    wait_s(driver.call_s);
    atomic_fetch_add(&driver.used_ns, thread_ns() - begin_ns);
    *out_count = 0;
    for (size_t i = 0; i < 2 && i < maximum && at_us > since_us; i++)
        samples[(*out_count)++] =
            (struct device_use_sample){.pid = atomic_load(&driver.programs[2 * device->info.index + i]),
                                       .at_us = at_us,
                                       .sm_percent = (uint8_t)(60 - 20 * i)};
    return READING_OK;
}

static void close_gpu(struct device *device)
{
    (void)device;
}

static const struct device_backend backend = {.name = "made-up",
                                              .kind = DEVICE_GPU,
                                              .close = close_gpu,
                                              .read = read_gpu,
                                              .processes = list_processes,
                                              .use = sample_use};

static int open_list(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error)
{
    (void)options;
    memset(out_list, 0, sizeof *out_list);
    for (int i = 0; i < GPUS; i++) {
        struct device_info info = {.kind = DEVICE_GPU, .name = "Made-up GPU", .minor = i};
        int code;

        snprintf(info.uuid, sizeof info.uuid, "GPU-%08d", i);
        code = device_list_add(out_list, &backend, &info, NULL, out_error);
        if (code < 0)
            return code;
    }
    return 0;
}

/* ---- programs that come and go ---- */

static pid_t start_program(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static void change_program(size_t place)
{
    pid_t old = atomic_load(&driver.programs[place]);

    atomic_store(&driver.programs[place], start_program());
    if (old > 0) {
        kill(old, SIGKILL);
        waitpid(old, NULL, 0);
    }
}

static void end_programs(void)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        kill(driver.programs[i], SIGKILL);
        waitpid(driver.programs[i], NULL, 0);
        driver.programs[i] = 0;
    }
}

/* ---- measuring ---- */

static double processor_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static double resident_mib(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "", *at = line;

    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        die("/proc/self/statm cannot be read");
    fclose(file);
    (void)strtoul(at, &at, 10);
    return (double)strtoul(at, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void tell(void *state, bool trouble, const char *line)
{
    (void)state;
    if (trouble)
        fprintf(stderr, "bench_watch: %s\n", line);
}

/* Opens what is measured, in a directory that is removed with everything in it. */
static void open_parts(char *directory, struct watch **out_watch, struct share **out_share)
{
    static const struct device_options devices;
    char state[128];
    struct fly_error error;
    struct watch_options watch = {.devices = &devices,
                                  .poll_s = poll_s,
                                  .save_s = save_s,
                                  .state_path = state,
                                  .open_list = open_list,
                                  .tell = tell};
    struct share_options share = {
        .poll_s = look_s, .keep_s = 3600, .state = directory, .save_s = save_s, .root = "/", .tell = tell};

    if (mkdtemp(directory) == NULL)
        die("no directory can be made");
    snprintf(state, sizeof state, "%s/totals", directory);
    if (watch_open(&watch, out_watch, &error) < 0)
        die(error.text);
    share.watch = *out_watch;
    if (share_open(&share, out_share, &error) < 0)
        die(error.text);
}

static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;

    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
    rmdir(path);
}

/* Lets so many hours pass, while programs come and go; returns the most that was resident in MiB. */
static double pass(double hours)
{
    double end_s = now_s() + hours * 3600.0, change_at_s = now_s() + change_s, most_mib = 0.0;
    size_t place = 0;

    while (now_s() < end_s) {
        const struct timespec moment = {.tv_nsec = 5000000};
        double mib = resident_mib();

        most_mib = mib > most_mib ? mib : most_mib;
        while (now_s() > change_at_s) {
            change_program(place++ % PROGRAMS);
            change_at_s += change_s;
        }
        nanosleep(&moment, NULL);
    }
    return most_mib;
}

/* What happened in a run. */
struct result {
    double passed_s, real_s, used_s, driver_s, more_mib;
    double readings, lists; /* as shares of those wanted */
};

static void tell_result(const char *title, const struct result *result)
{
    double own_s = (result->used_s - result->driver_s) / result->readings;

    printf("%s: %.2f simulated hours in %.0f s\n", title, result->passed_s / 3600.0, result->real_s);
    printf("  %.3f of the readings that were wanted, and %.3f of the lists of processes\n", result->readings,
           result->lists);
    printf(
        "  processor time: %.2f s, and %.2f s of them inside the driver; own time for all readings %.3f %% "
        "of a core (wanted below 0.5 %%)\n",
        result->used_s, result->driver_s, own_s / result->passed_s * 100.0);
    printf("  memory: %.1f MiB more resident than before, at most (wanted below 10 MiB)\n", result->more_mib);
    fflush(stdout);
}

static void run(const char *title, double hours, double speed)
{
    char directory[64];
    double before_mib, begin_s, real_begin_s, used_s;
    struct result result;
    struct watch *watch;
    struct share *share;

    snprintf(directory, sizeof directory, "%s/flyball-bench-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    run_fast(speed);
    for (size_t i = 0; i < PROGRAMS; i++)
        change_program(i);
    before_mib = resident_mib();
    open_parts(directory, &watch, &share);
    driver.readings = driver.lists = driver.used_ns = 0;
    used_s = processor_s();
    begin_s = now_s();
    real_begin_s = real_s();
    result.more_mib = pass(hours) - before_mib;
    result.passed_s = now_s() - begin_s;
    result.real_s = real_s() - real_begin_s;
    result.used_s = processor_s() - used_s;
    result.driver_s = (double)driver.used_ns * 1e-9;
    result.readings = (double)driver.readings / (result.passed_s / poll_s * GPUS);
    result.lists = (double)driver.lists / (result.passed_s / look_s * GPUS);
    share_close(share);
    watch_close(watch);
    end_programs();
    remove_directory(directory);
    tell_result(title, &result);
}

static double argument(char **argv, int argc, int place, double usual)
{
    return argc > place ? strtod(argv[place], NULL) : usual;
}

int main(int argc, char **argv)
{
    printf("The watch of %d GPUs every %g s and the account of their %d processes every %g s\n", GPUS, poll_s,
           PROGRAMS, look_s);
    run("A driver that answers at once", argument(argv, argc, 1, 2), argument(argv, argc, 2, 200));
    driver.call_s = 50e-6;
    driver.list_s = 2e-3;
    run("50 us a call of the driver, 2 ms a list of processes", argument(argv, argc, 3, 0.25),
        argument(argv, argc, 4, 25));
    return 0;
}

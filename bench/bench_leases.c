/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to set a limit by a lease that exists, against the driver's own call, on an emulated GPU.
 * Each line is a time at the median, with the least and the most of the rounds' medians, and what it is more
 * than the driver's call in the same rounds. Nothing here passes or fails.
 *
 *     bench_leases LIBRARY GUARD FLYBALLD [ROUNDS]
 *
 * LIBRARY is the emulator's libnvidia-ml.so.1. Locks, journal and the audit log lie in memory (/dev/shm), as
 * /run does on a machine, unless FLYBALL_BENCH_DIRECTORY names another directory. FLYBALL_BENCH_IDEAL=1 makes
 * the driver's call take no time in place of the emulator's usual 10 ms, asleep. All is measured in turns:
 * the driver's call alone; knob_set of a session and leases_change in this process; PATCH over the Unix
 * socket of a flyballd. Then again beside 5,000 processes that sleep.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/math/order.h"
#include "device/backend.h"
#include "emulator/control.h"
#include "node/lease/leases.h"

enum { ROUNDS = 15, ROUNDS_MAX = 1000, CALLS = 200, SLEEPERS = 5000, ANSWER_MAX = 8192, PATH_BYTES = 256 };
/* Between two calls, as of a client that does something else meanwhile. */
static const double pause_s = 3e-4;
enum { LOW_MW = 250000, HIGH_MW = 260000 };

enum course { DRIVER, SESSION, IN_PROCESS, OVER_SOCKET, WAYS };
static const char *const way_names[WAYS] = {"driver's own call", "knob_set", "leases_change",
                                            "PATCH over the socket"};

static char directory[PATH_BYTES], state_path[PATH_BYTES + 16], socket_path[PATH_BYTES + 32];
static struct device_list list;
static pid_t daemon_pid, sleepers;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void clean_up(void)
{
    if (daemon_pid > 0) {
        kill(daemon_pid, SIGTERM);
        waitpid(daemon_pid, NULL, 0);
    }
    if (sleepers > 0) {
        kill(-sleepers, SIGKILL);
        waitpid(sleepers, NULL, 0);
    }
    if (directory[0] != '\0')
        nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

__attribute__((noreturn)) static void die(const char *text)
{
    fprintf(stderr, "bench_leases: %s\n", text);
    exit(1);
}

/* ---- the driver ---- */

static int borrow(void *devices, size_t gpu, const struct device **out_device, struct fly_error *out_error)
{
    (void)devices;
    (void)out_error;
    *out_device = &list.devices[gpu];
    return 0;
}

static void give_back(void *devices, size_t gpu)
{
    (void)devices;
    (void)gpu;
}

struct bare {
    int (*init)(void);
    int (*handle)(unsigned index, void **out_device);
    int (*set_limit)(void *device, unsigned limit_mw);
    void *device;
};

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL)
        die("the driver library lacks a function");
    return found;
}

static struct bare open_bare(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct bare bare = {.device = NULL};

    if (library == NULL)
        die(dlerror());
    *(void **)&bare.init = symbol(library, "nvmlInit_v2");
    *(void **)&bare.handle = symbol(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&bare.set_limit = symbol(library, "nvmlDeviceSetPowerManagementLimit");
    if (bare.init() != 0 || bare.handle(0, &bare.device) != 0)
        die("the driver does not give its GPU");
    return bare;
}

/* ---- a daemon ---- */

static void start_daemon(const char *library, const char *guard, const char *flyballd)
{
    char config[PATH_BYTES + 32], option[PATH_BYTES + 48];
    FILE *file;

    snprintf(config, sizeof config, "%s/flyballd.ini", directory);
    file = fopen(config, "w");
    if (file == NULL)
        die("the configuration cannot be written");
    fprintf(
        file,
        "[server]\nlisten = unix:%s\n[watch]\nstate = %s\n[devices]\nnvml = %s\namdsmi = %s/none.so\n"
        "[lease]\nruntime_directory = %s/daemon-locks\nguard = %s\naudit = %s/audit.jsonl\npatience = 60\n"
        "[rights]\ncontained = yes\nreadonly = %s/readonly\n[rule bench]\nfor = user:%u\nallow = control\n",
        socket_path, directory, library, directory, directory, guard, directory, directory, geteuid());
    fclose(file);
    chmod(config, 0600);
    snprintf(option, sizeof option, "--config=%s", config);
    daemon_pid = fork();
    if (daemon_pid == 0) {
        int nothing = open("/dev/null", O_WRONLY);

        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(nothing, STDERR_FILENO);
        execl(flyballd, flyballd, option, (char *)NULL);
        _exit(127);
    }
}

static int connect_daemon(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(socket_path);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (length >= sizeof address.sun_path)
        die("the directory's name is too long for a socket in it");
    memcpy(address.sun_path, socket_path, length + 1);
    for (int i = 0; i < 1000; i++) {
        if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0)
            return connection;
        usleep(10000);
    }
    die("flyballd does not come up");
}

/* Asks, and reads the whole answer. */
static void ask(int connection, const char *method, const char *path, const char *body,
                char answer[ANSWER_MAX])
{
    char request[1024];
    int length = snprintf(request, sizeof request,
                          "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", method, path,
                          strlen(body), body);
    size_t have = 0, whole = ANSWER_MAX;

    if (send(connection, request, (size_t)length, MSG_NOSIGNAL) != length)
        die("flyballd hangs up");
    while (have < whole) {
        ssize_t got = recv(connection, answer + have, ANSWER_MAX - 1 - have, 0);
        const char *end, *stated;

        if (got <= 0)
            die("flyballd hangs up");
        have += (size_t)got;
        answer[have] = '\0';
        end = strstr(answer, "\r\n\r\n");
        stated = strstr(answer, "Content-Length: ");
        if (end != NULL && stated != NULL)
            whole = (size_t)(end + 4 - answer) + strtoul(stated + strlen("Content-Length: "), NULL, 10);
    }
}

struct scene {
    struct bare bare;
    struct knob *knob; /* of GPU 3 */
    struct leases *leases;
    struct lease lease;
    int connection;
    char path[128], answer[ANSWER_MAX];
};

static void lease_over_socket(struct scene *scene)
{
    const char *id;

    /* The watch may not have seen the GPU yet. */
    for (int i = 0; i < 100; i++) {
        ask(scene->connection, "POST", "/v1/leases", "{\"gpus\":[\"1\"],\"power_limit_w\":250}",
            scene->answer);
        id = strstr(scene->answer, "\"id\": \"");
        if (id == NULL)
            id = strstr(scene->answer, "\"id\":\"");
        if (id != NULL)
            break;
        usleep(50000);
    }
    if (id == NULL)
        die(scene->answer);
    id = strchr(id + 5, '"') + 1;
    snprintf(scene->path, sizeof scene->path, "/v1/leases/%.*s", (int)strcspn(id, "\""), id);
}

/* ---- measuring ---- */

static void set_once(struct scene *scene, enum course way, bool low)
{
    unsigned limit_mw = low ? LOW_MW : HIGH_MW;
    struct lease_wish wish = {.asked = QUANTITY_BIT(QUANTITY_POWER_LIMIT), .limit_mw = limit_mw};
    char body[64];

    switch (way) {
    case DRIVER:
        if (scene->bare.set_limit(scene->bare.device, limit_mw) != 0)
            die("the driver refuses");
        break;
    case SESSION:
        if (knob_set(scene->knob, &wish.limit_mw, NULL) < 0)
            die("a session fails");
        break;
    case IN_PROCESS:
        if (leases_change(scene->leases, scene->lease.id, NULL, &wish, &scene->lease, NULL) < 0)
            die("a change fails");
        break;
    default:
        snprintf(body, sizeof body, "{\"power_limit_w\":%u}", limit_mw / 1000);
        ask(scene->connection, "PATCH", scene->path, body, scene->answer);
        if (strncmp(scene->answer, "HTTP/1.1 200", strlen("HTTP/1.1 200")) != 0)
            die(scene->answer);
        break;
    }
}

static double median_us(struct scene *scene, enum course way)
{
    static double times_us[CALLS];

    for (int i = 0; i < CALLS; i++) {
        struct mono_time until = mono_after_s(mono_now(), pause_s), start;

        while (mono_elapsed_s(mono_now(), until) > 0)
            ;
        start = mono_now();
        set_once(scene, way, i % 2 == 0);
        times_us[i] = mono_elapsed_s(start, mono_now()) * 1e6;
    }
    qsort(times_us, CALLS, sizeof(double), order_doubles);
    return times_us[CALLS / 2];
}

static void measure(struct scene *scene, int rounds, const char *where)
{
    static double medians_us[WAYS][ROUNDS_MAX], more_us[WAYS][ROUNDS_MAX], ratios[ROUNDS_MAX];

    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            medians_us[way][round] = median_us(scene, (enum course)way);
            more_us[way][round] = medians_us[way][round] - medians_us[DRIVER][round];
        }
    }
    for (int way = 0; way < WAYS; way++) {
        for (int round = 0; round < rounds; round++)
            ratios[round] = (more_us[way][round] + medians_us[DRIVER][round]) / medians_us[DRIVER][round];
        qsort(more_us[way], (size_t)rounds, sizeof(double), order_doubles);
        qsort(ratios, (size_t)rounds, sizeof(double), order_doubles);
    }
    for (int way = 0; way < WAYS; way++) {
        qsort(medians_us[way], (size_t)rounds, sizeof(double), order_doubles);
        printf("%-22s %-24s %7.1f us (%.1f to %.1f)", way_names[way], where, medians_us[way][rounds / 2],
               medians_us[way][0], medians_us[way][rounds - 1]);
        if (way != DRIVER)
            printf(", %.1f us more (%.1f to %.1f), %.1f times the driver's", more_us[way][rounds / 2],
                   more_us[way][0], more_us[way][rounds - 1],
                   medians_us[way][rounds / 2] / medians_us[DRIVER][rounds / 2]);
        putchar('\n');
    }
    fflush(stdout);
}

/* One process starts them all, so that they are reaped together. */
static void start_sleepers(void)
{
    int ready[2];
    char byte;

    if (pipe2(ready, O_CLOEXEC) < 0)
        die("no pipe");
    sleepers = fork();
    if (sleepers == 0) {
        int started = 0;

        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (started < SLEEPERS) {
            pid_t child = fork();

            if (child == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                    pause();
            }
            if (child < 0)
                break;
            started++;
        }
        (void)!write(ready[1], started == SLEEPERS ? "y" : "n", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1 || byte != 'y')
        die("5,000 processes cannot be started");
    close(ready[0]);
}

static void prepare(const char *library, struct scene *scene, const struct knob_options *knob,
                    struct audit **audit)
{
    struct emulator_settings settings = emulator_default_settings;
    struct device_options options = {.nvml_path = library};
    struct emulator *emulator;
    struct fly_error error;
    char path[PATH_BYTES + 32];

    settings.any_user = true;
    settings.ideal = getenv("FLYBALL_BENCH_IDEAL") != NULL;
    if (emulator_settings_parse(&settings, "gpus=4,model=a100,shared=yes", &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0 ||
        device_backend_nvml.open(&options, &list, &error) < 0)
        die(error.text);
    scene->bare = open_bare(library);
    snprintf(path, sizeof path, "%s/own-audit.jsonl", directory);
    if (audit_open(path, false, audit, &error) < 0)
        die(error.text);
    if (knob_open(knob, (const struct device *const[]){&list.devices[3]}, 1, &scene->knob, &error) < 0)
        die(error.text);
}

int main(int argc, char **argv)
{
    static struct scene scene;
    const char *base = getenv("FLYBALL_BENCH_DIRECTORY");
    char locks[PATH_BYTES + 32], readonly[PATH_BYTES + 32];
    struct audit *audit;
    int rounds = argc > 4 ? (int)strtol(argv[4], NULL, 10) : ROUNDS;
    struct fly_error error;

    if (argc < 4 || rounds < 1 || rounds > ROUNDS_MAX)
        die("usage: bench_leases LIBRARY GUARD FLYBALLD [ROUNDS]");
    snprintf(directory, sizeof directory, "%s/flyball-bench-leases-%d",
             base != NULL                    ? base
             : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                             : "/tmp",
             (int)getpid());
    if (mkdir(directory, 0755) < 0)
        die(strerror(errno));
    atexit(clean_up);
    snprintf(state_path, sizeof state_path, "%s/state", directory);
    snprintf(socket_path, sizeof socket_path, "%s/flyballd.sock", directory);
    snprintf(locks, sizeof locks, "%s/locks", directory);
    snprintf(readonly, sizeof readonly, "%s/readonly", directory);
    mkdir(locks, 0755);
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);

    {
        struct knob_options knob = {.runtime_directory = locks,
                                    .readonly_path = readonly,
                                    .mps_pipe_directory = directory,
                                    .guard_path = argv[2],
                                    .nvml_path = argv[1],
                                    .trusted_s = 3600};
        struct leases_options options = {
            .gpu_count = 3, .borrow = borrow, .give_back = give_back, .knob = &knob, .patience_s = 60};
        /* GPU 2: the daemon has GPU 1, and GPU 0 is the driver's alone. */
        const struct lease_request request = {
            .holder = {.pid = getpid(), .uid = geteuid()},
            .gpus = 1 << 2,
            .wish = {.asked = QUANTITY_BIT(QUANTITY_POWER_LIMIT), .limit_mw = LOW_MW}};

        prepare(argv[1], &scene, &knob, &audit);
        options.audit = audit;
        if (leases_open(&options, &scene.leases, &error) < 0 ||
            leases_grant(scene.leases, &request, &scene.lease, &error) < 0)
            die(error.text);
        start_daemon(argv[1], argv[2], argv[3]);
        scene.connection = connect_daemon();
        lease_over_socket(&scene);
        measure(&scene, rounds, "");
        start_sleepers();
        measure(&scene, rounds, "beside 5,000 processes");
        knob_close(scene.knob, NULL);
        leases_close(scene.leases, 10);
        audit_close(audit);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_NODE_LEASE_SUPPORT_H
#define FLYBALL_TESTS_NODE_LEASE_SUPPORT_H

/* Leases over emulated GPUs, and processes that hold them. */
#include "knob_support.h"

#include "node/lease/leases.h"

enum { LEASE_LIMIT = QUANTITY_BIT(QUANTITY_POWER_LIMIT), LEASE_CLOCK = QUANTITY_BIT(QUANTITY_CLOCK_CEILING) };

/* For how long a test waits for what must happen; the machine may be busy. */
static const double lease_patience_s = 60;

struct lease_scene {
    struct knob_machine machine;
    struct leases *leases;
    int borrowed[KNOB_GPUS_MAX];
    _Atomic int ended[LEASE_END_COUNT]; /* how many leases */
    _Atomic size_t present;             /* GPUs that are there; 0: all, from the start on */
    double patience_s;                  /* 0: lease_patience_s */
    enum lease_rule rule;
    struct audit *audit;
    void (*on_borrow)(struct lease_scene *scene); /* called by the hand while it opens; NULL: nothing */
};

static inline int scene_borrow(void *state, size_t gpu, const struct device **out_device,
                               struct fly_error *out_error)
{
    struct lease_scene *scene = state;

    (void)out_error;
    if (scene->on_borrow != NULL)
        scene->on_borrow(scene);
    scene->borrowed[gpu]++;
    *out_device = scene->machine.devices[gpu];
    return 0;
}

static inline void scene_give_back(void *state, size_t gpu)
{
    struct lease_scene *scene = state;

    scene->borrowed[gpu]--;
}

static inline size_t scene_count(void *state)
{
    struct lease_scene *scene = state;

    return scene->present > 0 ? scene->present : scene->machine.list.count;
}

/* Each GPU has a ceiling of its own. */
static inline void scene_bounds(void *state, size_t gpu, struct lease_bounds *out_bounds)
{
    (void)state;
    *out_bounds = (struct lease_bounds){.ceiling_mw = 300000 - 10000 * (int64_t)gpu};
}

static inline void scene_ended(void *state, const struct lease *lease, enum lease_end end, const char *why)
{
    struct lease_scene *scene = state;

    (void)lease;
    (void)why;
    scene->ended[end]++;
}

static inline void scene_tell(void *state, const char *line)
{
    (void)state;
    if (getenv("FLYBALL_TEST_TALK") != NULL)
        fprintf(stderr, "# %s\n", line);
}

/* Opens leases over a machine that exists. */
static inline void scene_open(struct lease_scene *scene)
{
    const struct leases_options options = {
        .gpu_count = scene_count(scene),
        .count = scene->present > 0 ? scene_count : NULL,
        .bounds = scene_bounds,
        .rules = scene,
        .borrow = scene_borrow,
        .give_back = scene_give_back,
        .devices = scene,
        .knob = &scene->machine.options,
        .table = {.rule = scene->rule},
        .patience_s = scene->patience_s > 0 ? scene->patience_s : lease_patience_s,
        .audit = scene->audit,
        .listener = {.ended = scene_ended, .tell = scene_tell, .state = scene},
    };
    struct fly_error error;

    if (leases_open(&options, &scene->leases, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void scene_start(struct lease_scene *scene, const char *settings)
{
    enum lease_rule rule = scene->rule;
    double patience_s = scene->patience_s;

    *scene = (struct lease_scene){.rule = rule, .patience_s = patience_s};
    knob_machine_start(&scene->machine, settings, NULL);
    scene_open(scene);
}

static inline void scene_stop(struct lease_scene *scene)
{
    assert_int_equal(leases_close(scene->leases, lease_patience_s), 0);
    for (size_t i = 0; i < scene->machine.list.count; i++)
        assert_int_equal(scene->borrowed[i], 0);
    knob_machine_stop(&scene->machine);
}

static inline struct lease_request request_of(pid_t pid, uint64_t gpus, int64_t limit_mw)
{
    return (struct lease_request){.holder = {.pid = pid, .uid = geteuid()},
                                  .gpus = gpus,
                                  .wish = {.asked = LEASE_LIMIT, .limit_mw = limit_mw}};
}

/* Grants, and fails the test if that is not possible. */
static inline struct lease must_grant(struct lease_scene *scene, const struct lease_request *request)
{
    struct lease lease = {.id = ""};
    struct fly_error error;

    if (leases_grant(scene->leases, request, &lease, &error) < 0)
        fail_msg("%s", error.text);
    return lease;
}

static inline bool limit_is(struct lease_scene *scene, unsigned gpu, double limit_w)
{
    return limit_becomes(&scene->machine, gpu, limit_w, lease_patience_s);
}

/* Ticks until all leases have ended and everything is let go. */
static inline void scene_settle(struct lease_scene *scene)
{
    struct mono_time end = mono_after_s(mono_now(), lease_patience_s);
    struct leases_gpu gpu = {.leases = 1};

    for (size_t i = 0; i < scene->machine.list.count; i++) {
        do {
            leases_tick(scene->leases);
            leases_look(scene->leases, i, &gpu);
            usleep(2000);
        } while ((gpu.leases > 0 || gpu.turned || gpu.busy_s > 0 || !gpu.ready) &&
                 mono_elapsed_s(mono_now(), end) > 0);
        assert_int_equal(gpu.leases, 0);
        assert_false(gpu.turned);
    }
}

/* Reads a process's command line, with blanks between the words; "" if it is gone. */
static inline void read_command(const char *pid, char *text, size_t bytes)
{
    char path[300];
    ssize_t length;
    int fd;

    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    length = fd >= 0 ? read(fd, text, bytes - 1) : 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < length - 1; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    text[length > 0 ? length : 0] = '\0';
}

/* Finds the guards of the machine's sessions; returns how many there are, at most `maximum`. */
static inline size_t find_guards(const struct knob_machine *machine, pid_t *out_guards, size_t maximum)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    char text[4096];
    size_t count = 0;

    assert_non_null(processes);
    while (count < maximum && (entry = readdir(processes)) != NULL) {
        read_command(entry->d_name, text, sizeof text);
        if (strncmp(text, "flyball-guard", strlen("flyball-guard")) == 0 &&
            strstr(text, machine->locks) != NULL)
            out_guards[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    closedir(processes);
    return count;
}

#endif

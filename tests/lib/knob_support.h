/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_KNOB_SUPPORT_H
#define FLYBALL_TESTS_LIB_KNOB_SUPPORT_H

/* Emulated GPUs whose knobs this process and others turn, in the test's own directory. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/backend.h"
#include "emulator/control.h"
#include "knob/knob.h"

enum { KNOB_GPUS_MAX = 4, KNOB_PATH_MAX = 200 };

/* One at a time; children inherit the paths in these variables. */
struct knob_machine {
    char directory[KNOB_PATH_MAX]; /* of all files */
    char locks[KNOB_PATH_MAX + 16], readonly[KNOB_PATH_MAX + 16], state[KNOB_PATH_MAX + 16];
    char library[KNOB_PATH_MAX * 2], guard[KNOB_PATH_MAX * 2];
    char reachable[32]; /* "": none */
    struct emulator *emulator;
    struct device_list list;
    const struct device *devices[KNOB_GPUS_MAX];
    struct knob_options options;
};

/* Sets the paths, for this process's own machine or for its parent's. */
static inline void knob_machine_paths(struct knob_machine *machine)
{
    const char *inherited = getenv("FLYBALL_TEST_KNOB"), *emulator = getenv("FLYBALL_TEST_EMULATOR"),
               *build = getenv("FLYBALL_TEST_BUILD");

    memset(machine, 0, sizeof *machine);
    if (inherited != NULL)
        snprintf(machine->directory, sizeof machine->directory, "%s", inherited);
    else
        /* In memory if possible, since each turn is synced. */
        snprintf(machine->directory, sizeof machine->directory, "%s/flyball-test-knob-%d",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    snprintf(machine->locks, sizeof machine->locks, "%s/locks", machine->directory);
    snprintf(machine->readonly, sizeof machine->readonly, "%s/readonly", machine->directory);
    snprintf(machine->state, sizeof machine->state, "%s/state", machine->directory);
    snprintf(machine->library, sizeof machine->library, "%s/libnvidia-ml.so.1",
             emulator != NULL ? emulator : "build/emulator");
    snprintf(machine->guard, sizeof machine->guard, "%s/../flyball-guard",
             build != NULL ? build : "build/tests");
    setenv("FLYBALL_EMULATOR_STATE", machine->state, 1);
    machine->options = (struct knob_options){
        .runtime_directory = machine->locks,
        .readonly_path = machine->readonly,
        .mps_pipe_directory = machine->directory,
        .guard_path = machine->guard,
        .nvml_path = machine->library,
        .program = "test",
    };
}

static inline void knob_machine_open_devices(struct knob_machine *machine)
{
    struct device_options options = {.nvml_path = machine->library};
    struct fly_error error;

    if (device_backend_nvml.open(&options, &machine->list, &error) < 0)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < machine->list.count && i < KNOB_GPUS_MAX; i++)
        machine->devices[i] = &machine->list.devices[i];
}

static inline void knob_machine_remove(const struct knob_machine *machine)
{
    char command[KNOB_PATH_MAX + 96];

    snprintf(command, sizeof command, "rm -rf '%s' %s", machine->directory, machine->reachable);
    assert_int_equal(system(command), 0);
}

/* Sets these faults from now on; none for "". */
static inline void knob_machine_fault(struct knob_machine *machine, const char *script)
{
    struct fault_list faults = {0};
    struct fly_error error;

    if (faults_parse(script, "test", &faults, &error) < 0)
        fail_msg("%s", error.text);
    emulator_set_faults(machine->emulator, &faults);
}

static inline void knob_machine_start(struct knob_machine *machine, const char *settings_text,
                                      const char *script)
{
    struct emulator_settings settings = emulator_default_settings;
    struct fly_error error;

    unsetenv("FLYBALL_TEST_KNOB");
    knob_machine_paths(machine);
    knob_machine_remove(machine);
    assert_int_equal(mkdir(machine->directory, 0755), 0);
    assert_int_equal(mkdir(machine->locks, 0700), 0);
    assert_int_equal(chmod(machine->locks, 01777), 0);
    settings.ideal = true;
    settings.any_user = strstr(settings_text, "shared") == NULL; /* so that the test need not run as root */
    if (emulator_settings_parse(&settings, settings_text, &error) < 0 ||
        emulator_create(machine->state, &settings, &machine->emulator, &error) < 0)
        fail_msg("%s", error.text);
    if (script != NULL)
        knob_machine_fault(machine, script);
    knob_machine_open_devices(machine);
    setenv("FLYBALL_TEST_KNOB", machine->directory, 1);
}

/* Copies guard and driver where another user can reach them: the build may be where only root can. */
static inline void knob_machine_make_reachable(struct knob_machine *machine)
{
    char command[KNOB_PATH_MAX * 6];

    /* No program can be run from memory that is mounted noexec. */
    snprintf(machine->reachable, sizeof machine->reachable, "/tmp/flyball-test-reach-XXXXXX");
    assert_non_null(mkdtemp(machine->reachable));
    assert_int_equal(chmod(machine->reachable, 0755), 0);
    snprintf(command, sizeof command, "cp '%s' '%s' '%s'", machine->guard, machine->library,
             machine->reachable);
    assert_int_equal(system(command), 0);
    snprintf(machine->guard, sizeof machine->guard, "%s/flyball-guard", machine->reachable);
    snprintf(machine->library, sizeof machine->library, "%s/libnvidia-ml.so.1", machine->reachable);
}

static inline void knob_machine_stop(struct knob_machine *machine)
{
    device_list_close(&machine->list);
    emulator_close(machine->emulator);
    knob_machine_remove(machine);
    unsetenv("FLYBALL_TEST_KNOB");
}

static inline struct knob *knob_machine_open(struct knob_machine *machine)
{
    struct knob *knob = NULL;
    struct fly_error error;

    if (knob_open(&machine->options, machine->devices, machine->list.count, &knob, &error) < 0)
        fail_msg("%s", error.text);
    return knob;
}

/* How many files the journal has. */
static inline int knob_machine_entries(const struct knob_machine *machine)
{
    DIR *directory = opendir(machine->locks);
    const struct dirent *file;
    int count = 0;

    assert_non_null(directory);
    while ((file = readdir(directory)) != NULL)
        count += (strstr(file->d_name, ".turned") != NULL || strstr(file->d_name, ".kept") != NULL) &&
                 strstr(file->d_name, ".new") == NULL;
    closedir(directory);
    return count;
}

/*
 * How long what was turned may take to be back. Only what is never put back takes so long here; how soon it
 * is back is the machine's too, and scripts/soak, which measures that, names a second.
 */
static inline double knob_patience_s(void)
{
    const char *text = getenv("FLYBALL_TEST_BACK_S");

    return text != NULL ? strtod(text, NULL) : 60.0;
}

/* Whether the clock becomes free within the time. */
static inline bool clock_becomes_free(struct knob_machine *machine, unsigned gpu, double patience_s)
{
    struct mono_time end = mono_after_s(mono_now(), patience_s);

    while (emulator_ceiling_mhz(machine->emulator, gpu) != 0) {
        if (mono_elapsed_s(mono_now(), end) <= 0)
            return false;
        usleep(2000);
    }
    return true;
}

/* Whether the limit reaches that value within the time; waits no longer than needed. */
static inline bool limit_becomes(struct knob_machine *machine, unsigned gpu, double limit_w,
                                 double patience_s)
{
    struct mono_time end = mono_after_s(mono_now(), patience_s);

    while (emulator_limit_w(machine->emulator, gpu) != limit_w) {
        if (mono_elapsed_s(mono_now(), end) <= 0)
            return false;
        usleep(2000);
    }
    return true;
}

/* Starts this program again, in another role; its output can be read from a pipe. It does not outlive a test
 * that failed, whose output it would keep open. */
struct role {
    pid_t pid;
    int out;
};

static inline struct role role_start(const char *word, const char *argument)
{
    struct role role;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    role.pid = fork();
    assert_true(role.pid >= 0);
    if (role.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        signal(SIGINT, SIG_DFL); /* in case the test was started with it ignored */
        execl("/proc/self/exe", "test_knob", word, argument, NULL);
        _exit(99);
    }
    close(ends[1]);
    role.out = ends[0];
    return role;
}

/* Waits for the number that the role prints when it is ready. */
static inline long role_says(const struct role *role)
{
    char text[32];
    ssize_t length = read(role->out, text, sizeof text - 1);

    assert_true(length > 0);
    text[length] = '\0';
    return strtol(text, NULL, 10);
}

/* The exit status, or 128 plus the signal that ended it. */
static inline int role_end(struct role *role)
{
    int status;

    assert_int_equal(waitpid(role->pid, &status, 0), role->pid);
    close(role->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif

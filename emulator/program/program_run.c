/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball-emulator run`: runs one command on emulated GPUs of its own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/owner.h"
#include "emulator/program/program.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_BY_SIGNAL = 128 };

static volatile sig_atomic_t child_pid;

static void pass_on(int signal_number)
{
    if (child_pid > 0)
        kill((pid_t)child_pid, signal_number);
}

static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/*
 * Passes signals that end a program on to the command; a terminal's keys reach it by themselves. They wait
 * until `out_mask` is set again, when the command is known: it may run before its process id is noted.
 */
static void watch_signals(sigset_t *out_mask)
{
    struct sigaction action = {.sa_handler = pass_on};
    sigset_t waiting;

    sigemptyset(&waiting);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        sigaddset(&waiting, passed[i]);
        sigaction(passed[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &waiting, out_mask);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
}

static void leave_signals(const sigset_t *mask)
{
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        signal(passed[i], SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Puts the directory first on a variable's list of directories. */
static void put_first(const char *variable, const char *directory)
{
    const char *before = getenv(variable);
    char *list = NULL;

    if (asprintf(&list, "%s%s%s", directory, before != NULL && before[0] != '\0' ? ":" : "",
                 before != NULL ? before : "") >= 0 &&
        list != NULL)
        setenv(variable, list, 1);
    free(list);
}

static void set_environment(const struct emulator *emulator, const char *directory)
{
    put_first("LD_LIBRARY_PATH", directory);
    put_first("PATH", directory);
    setenv("FLYBALL_EMULATOR_STATE", emulator->path, 1);
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return EXIT_NOT_EXECUTABLE;
    }
    return WIFSIGNALED(status) ? EXIT_BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The command ends with this program, even when that is killed. */
static void follow(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        raise(SIGTERM);
}

/* Returns the command's exit status as a shell would. */
static int run_child(const struct program_call *call, const struct emulator *emulator, const char *directory)
{
    pid_t parent = getpid();
    sigset_t mask;
    pid_t pid;

    watch_signals(&mask);
    pid = fork();
    if (pid < 0) {
        program_say("'%s': %s", call->operands[0], strerror(errno));
        return EXIT_NOT_EXECUTABLE;
    }
    if (pid == 0) {
        leave_signals(&mask);
        follow(parent);
        set_environment(emulator, directory);
        execvp(call->operands[0], call->operands);
        program_say("'%s': %s", call->operands[0], strerror(errno));
        _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
    }
    child_pid = pid;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return wait_for(pid);
}

/* Makes the state in the usual directory, under a name of this process. */
static int create_own(const struct program_call *call, struct emulator **out_emulator,
                      struct fly_error *out_error)
{
    char usual[EMULATOR_PATH_MAX], own[EMULATOR_PATH_MAX + 16];

    if (call->state != NULL)
        return emulator_create_owned(call->state, &call->settings, out_emulator, out_error);
    if (!emulator_default_path(usual))
        return error_set(out_error, FLY_ELIMIT,
                         "the path of the emulator's state is too long; choose a shorter one with --state");
    snprintf(own, sizeof own, "%s.%d", usual, (int)getpid());
    return emulator_create_owned(own, &call->settings, out_emulator, out_error);
}

static int run_run(const struct program_call *call, struct fly_error *out_error)
{
    char directory[EMULATOR_PATH_MAX] = "";
    struct emulator *emulator = NULL;
    struct owner_watcher watcher;
    double load_w = 0.0;
    int code = program_library_directory(directory, out_error);

    if (code == 0 && call->operand_count == 0)
        code = error_set(out_error, FLY_EUSAGE, "no command given; see 'flyball-emulator help run'");
    if (code == 0)
        code = program_number(call, "load-w", 0.0, 10000.0, 0.0, &load_w, out_error);
    if (code == 0)
        code = create_own(call, &emulator, out_error);
    if (code < 0 || emulator == NULL)
        return code;
    for (unsigned i = 0; load_w > 0.0 && i < emulator_gpu_count(emulator); i++)
        emulator_set_load(emulator, i, load_w);
    owner_watch(emulator, &watcher);
    code = run_child(call, emulator, directory);
    if (program_value(call, "keep") == NULL) {
        emulator_remove(emulator->path, NULL);
    } else {
        owner_leave(emulator);
        program_say("kept the state '%s'", emulator->path);
    }
    owner_unwatch(&watcher);
    emulator_close(emulator);
    return code;
}

const struct program_command program_run = {
    .name = "run",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .summary = "run a command on emulated GPUs of its own",
    .text = "The GPUs are made for the command and go with it, also when this program is killed. The command "
            "finds\n"
            "their driver library and their nvidia-smi first. Its exit status is passed on.",
    .options = {{"load-w", "W", "Power that every GPU wants from the start; none unless given."},
                {"keep", NULL, "Leave the GPUs there when the command ends."}},
    .settings = true,
    .run = run_run,
};

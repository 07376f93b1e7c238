/* SPDX-License-Identifier: Apache-2.0 */
/* Spawns one program, from a process that may be large, and reads its output until it ends. */
#include "knob/way/command_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { LOOK_MS = 10, CHUNK = 1024 };
static const double kill_s = 1; /* time for a killed process to be gone */

struct running {
    pid_t pid;
    int process; /* readable when the program ends; -1: unavailable */
    int output;
    struct command_end *end;
    size_t length;
};

static int spawn_with(char *const *words, int output, posix_spawn_file_actions_t *files,
                      posix_spawnattr_t *attributes, pid_t *out_pid)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(files, output, STDERR_FILENO);
#ifdef __GLIBC__
    posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    return posix_spawnp(out_pid, words[0], files, attributes, words, environ);
}

/* Returns 0 or errno. */
static int spawn(char *const *words, int output, pid_t *out_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int cause = posix_spawn_file_actions_init(&files);

    if (cause != 0)
        return cause;
    cause = posix_spawnattr_init(&attributes);
    if (cause == 0) {
        cause = spawn_with(words, output, &files, &attributes, out_pid);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return cause;
}

/* Reads what is available now; drops what does not fit. */
static void take_output(struct running *running)
{
    char chunk[CHUNK];
    ssize_t more;

    while (running->output >= 0 && (more = read(running->output, chunk, sizeof chunk)) != 0) {
        size_t room = COMMAND_OUTPUT_MAX - 1 - running->length;

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return;
        memcpy(running->end->output + running->length, chunk, (size_t)more < room ? (size_t)more : room);
        running->length += (size_t)more < room ? (size_t)more : room;
    }
    if (running->output >= 0)
        close(running->output);
    running->output = -1;
}

/*
 * Returns whether it has ended. A status that another part of the process took is unknown; the
 * caller checks the knob in any case.
 */
static bool has_ended(struct running *running)
{
    int status = 0;
    pid_t waited = waitpid(running->pid, &status, WNOHANG);

    if (waited == 0 || (waited < 0 && errno == EINTR))
        return false;
    running->end->ended = true;
    if (waited == running->pid)
        running->end->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

/* Listens until the program ends, without waiting for children that hold its output. */
static bool attend(struct running *running, double time_s)
{
    struct mono_time until = mono_after_s(mono_now(), time_s);

    while (!has_ended(running)) {
        struct pollfd wanted[] = {{.fd = running->process, .events = POLLIN},
                                  {.fd = running->output, .events = POLLIN}};
        double left_s = mono_elapsed_s(mono_now(), until);

        if (left_s <= 0)
            return false;
        poll(wanted, 2, running->process < 0 || left_s * 1e3 < LOOK_MS ? LOOK_MS : (int)(left_s * 1e3));
        take_output(running);
    }
    take_output(running);
    return true;
}

void command_run(char *const *words, double timeout_s, struct command_end *out_end)
{
    struct running running = {.process = -1, .end = out_end};
    int ends[2];

    memset(out_end, 0, sizeof *out_end);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        out_end->spawn_errno = errno;
        return;
    }
    out_end->spawn_errno = spawn(words, ends[1], &running.pid);
    close(ends[1]);
    running.output = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (out_end->spawn_errno == 0) {
        running.process = (int)syscall(SYS_pidfd_open, running.pid, 0);
        if (!attend(&running, timeout_s)) {
            kill(-running.pid, SIGKILL);
            attend(&running, kill_s);
            out_end->ended = false;
        }
    }
    if (running.process >= 0)
        close(running.process);
    if (running.output >= 0)
        close(running.output);
}

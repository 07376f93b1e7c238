/* SPDX-License-Identifier: Apache-2.0 */
/* The session's side: starts the guard and sends it messages. */
#include "knob/guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wait.h"
#include "knob/fork_close.h"
#include "knob/guard_private.h"

#ifndef FLYBALL_LIBEXECDIR
#define FLYBALL_LIBEXECDIR "/usr/local/libexec/flyball"
#endif

enum { NUMBER_MAX = 24, START_MS = 10000, ANSWER_MS = 10000, END_MS = 4000 };

static const char installed_guard[] = FLYBALL_LIBEXECDIR "/" GUARD_PROGRAM;

/* Whether the guard lies beside a file, whose path must be absolute. */
static bool is_beside(const char *file, char path[GUARD_PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    int length;

    if (file[0] != '/')
        return false;
    length = snprintf(path, GUARD_PATH_MAX, "%.*s/%s", (int)(slash - file), file, GUARD_PROGRAM);
    return length < GUARD_PATH_MAX && access(path, X_OK) == 0;
}

/* Where the guard is beside the library, the program that loaded it may be anything, such as an interpreter.
 */
static bool is_beside_library(char path[GUARD_PATH_MAX])
{
    Dl_info library;

    return dladdr(installed_guard, &library) != 0 && library.dli_fname != NULL &&
           is_beside(library.dli_fname, path);
}

void guard_program(const char *given, char path[GUARD_PATH_MAX])
{
    const char *named = given != NULL ? given : secure_getenv(GUARD_VARIABLE);
    char self[GUARD_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    self[length > 0 ? length : 0] = '\0';
    if (named != NULL && named[0] != '\0')
        snprintf(path, GUARD_PATH_MAX, "%s", named);
    else if (!is_beside(self, path) && !is_beside_library(path))
        snprintf(path, GUARD_PATH_MAX, "%s", installed_guard);
}

static int not_started(const char *path, int cause, struct fly_error *out_error)
{
    int code = cause == ENOENT || cause == ENOTDIR ? FLY_ENOTFOUND
               : cause == EACCES || cause == EPERM ? FLY_EPERM
               : cause == ENOMEM                   ? FLY_ENOMEM
                                                   : FLY_EUNSUPPORTED;

    return error_set(
        out_error, code,
        "the guard '%s', which turns knobs back, cannot be started: %s; install it, for without it "
        "nothing is turned",
        path, strerror(cause));
}

/*
 * Spawns in a new session, with the terminal's signals blocked until the guard ignores them.
 * Returns 0 or errno.
 */
static int spawn_with(const char *path, char *const *arguments, int socket, posix_spawn_file_actions_t *files,
                      posix_spawnattr_t *attributes)
{
    sigset_t blocked, all;
    pid_t pid;
    int cause;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGQUIT);
    sigfillset(&all);
    posix_spawn_file_actions_adddup2(files, socket, GUARD_SOCKET);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(attributes, &blocked);
    posix_spawnattr_setsigdefault(attributes, &all);
    cause = posix_spawn(&pid, path, files, attributes, arguments, environ);
    if (cause != 0)
        return cause;
    /*
     * The child forks and ends at once; another thread that waits for all children may have taken its
     * status.
     */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return 0;
}

static int spawn(const char *path, char *const *arguments, int socket)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int cause = posix_spawn_file_actions_init(&files);

    if (cause != 0)
        return cause;
    cause = posix_spawnattr_init(&attributes);
    if (cause == 0) {
        cause = spawn_with(path, arguments, socket, &files, &attributes);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return cause;
}

/* Returns whether the socket becomes readable, or ends, within that time. */
static bool wait_for(int socket, int patience_ms)
{
    struct mono_time end = mono_after_s(mono_now(), patience_ms * 1e-3);
    struct pollfd wanted = {.fd = socket, .events = POLLIN};

    for (;;) {
        int ready = mono_poll(&wanted, 1, end);

        if (ready >= 0 || errno != EINTR)
            return ready > 0;
        if (mono_now().ns >= end.ns)
            return false;
    }
}

/* Receives the guard's answer; false if there is none. */
static bool receive(int socket, int patience_ms, enum guard_word word, struct guard_message *out_message)
{
    ssize_t length;

    if (!wait_for(socket, patience_ms))
        return false;
    do
        length = recv(socket, out_message, sizeof *out_message, 0);
    while (length < 0 && errno == EINTR);
    return length == (ssize_t)sizeof *out_message && out_message->word == word;
}

static int await_ready(const char *path, struct guard *guard, struct fly_error *out_error)
{
    struct guard_message message;

    if (!receive(guard->socket, START_MS, GUARD_READY, &message))
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "the guard '%s', which turns knobs back, does not come up; is it of this version? See "
            "whether 'flyball doctor' finds the driver well",
            path);
    if (message.error.code < 0)
        return error_set(out_error, message.error.code, "the guard, which turns knobs back, cannot: %.400s",
                         message.error.text);
    guard->pid = message.pid;
    return 0;
}

/* Returns the driver's path so that it means the same in another directory; a bare name stays as it is. */
static char *absolute(const char *path)
{
    char *full = path != NULL && strchr(path, '/') != NULL ? realpath(path, NULL) : NULL;

    return full != NULL ? full : strdup(path != NULL ? path : "");
}

static int spawn_guard(const struct guard_options *options, const char *path, int socket)
{
    char session[NUMBER_MAX], program[] = GUARD_PROGRAM, protocol[] = GUARD_PROTOCOL;
    char *nvml_path = absolute(options->nvml_path), *amdsmi_path = absolute(options->amdsmi_path);
    char *directory = strdup(options->directory);
    char *daemon = strdup(options->site->daemon);
    char *arguments[] = {program, protocol, session, directory, nvml_path, amdsmi_path, daemon, NULL};
    int cause = ENOMEM;

    snprintf(session, sizeof session, "%lld", (long long)getpid());
    if (nvml_path != NULL && amdsmi_path != NULL && directory != NULL && daemon != NULL)
        cause = spawn(path, arguments, socket);
    free(nvml_path);
    free(amdsmi_path);
    free(directory);
    free(daemon);
    return cause;
}

int guard_start(const struct guard_options *options, struct guard *out_guard, struct fly_error *out_error)
{
    struct guard guard = {.socket = -1};
    char path[GUARD_PATH_MAX];
    int ends[2], cause, code;

    guard_program(options->path, path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return not_started(path, errno, out_error);
    guard.socket = fork_close_add(ends[0]);
    cause = spawn_guard(options, path, ends[1]);
    close(ends[1]);
    code = cause != 0 ? not_started(path, cause, out_error) : await_ready(path, &guard, out_error);
    if (code < 0)
        fork_close_now(guard.socket);
    else
        *out_guard = guard;
    return code;
}

static int has_ended(struct guard *guard, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_ESTATE,
        "the guard, process %lld, has ended before its time; what was turned is turned back, and "
        "nothing is turned any more: find out who killed it, and start again",
        (long long)guard->pid);
}

/* Sends a message, with a lock unless that is -1. Never raises SIGPIPE. */
static int send_message(struct guard *guard, struct guard_message *message, int lock,
                        struct fly_error *out_error)
{
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (lock >= 0) {
        whole.msg_control = control.bytes;
        whole.msg_controllen = sizeof control.bytes;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &lock, sizeof lock);
    }
    do
        sent = sendmsg(guard->socket, &whole, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *message ? 0 : has_ended(guard, out_error);
}

static struct guard_message message_of(enum guard_word word, const char *uuid)
{
    struct guard_message message;

    memset(&message, 0, sizeof message);
    message.word = word;
    snprintf(message.uuid, sizeof message.uuid, "%s", uuid);
    return message;
}

int guard_hold(struct guard *guard, const struct device_info *gpu, int lock, struct fly_error *out_error)
{
    struct guard_message message = message_of(GUARD_HOLD, gpu->uuid);
    int code;

    if (guard->pid == 0)
        return 0;
    snprintf(message.pci, sizeof message.pci, "%s", gpu->pci);
    code = send_message(guard, &message, lock, out_error);
    if (code < 0)
        return code;
    if (!receive(guard->socket, ANSWER_MS, GUARD_HELD, &message))
        return wait_for(guard->socket, 0)
                   ? has_ended(guard, out_error)
                   : error_set(out_error, FLY_EUNSUPPORTED,
                               "the driver of GPU %u does not answer the guard, which turns knobs back, so "
                               "that nothing is turned there; see 'flyball doctor'",
                               gpu->index);
    if (message.error.code < 0)
        return error_set(out_error, message.error.code, "%.500s", message.error.text);
    return 0;
}

int guard_tell(struct guard *guard, const char *uuid, const struct turn *turn, struct fly_error *out_error)
{
    struct guard_message message = message_of(GUARD_TELL, uuid);

    message.turn = *turn;
    return guard->pid == 0 ? 0 : send_message(guard, &message, -1, out_error);
}

int guard_forget(struct guard *guard, const char *uuid, enum quantity quantity, struct fly_error *out_error)
{
    struct guard_message message = message_of(GUARD_FORGET, uuid);

    message.turn.quantity = quantity;
    return guard->pid == 0 ? 0 : send_message(guard, &message, -1, out_error);
}

bool guard_lives(const struct guard *guard)
{
    /* The guard sends nothing unasked, so a readable socket means that it has ended. */
    return guard->pid == 0 || !wait_for(guard->socket, 0);
}

void guard_end(struct guard *guard)
{
    if (guard->pid == 0)
        return;
    shutdown(guard->socket, SHUT_WR);
    wait_for(guard->socket, END_MS);
    fork_close_now(guard->socket);
    *guard = (struct guard){.socket = -1};
}

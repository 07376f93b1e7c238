/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program for which chosen system calls on chosen files do not come back while a file exists, as on
 * a disk or a server that has stopped answering:
 *
 *     slow_calls WHILE LOG PLACES CALLS PROGRAM [ARGUMENT...]
 *
 * Calls of the kinds CALLS (a list, as in `kinds` below) wait while the file WHILE exists, if their path,
 * or that of their descriptor, contains one of PLACES (separated by colons). "sync,lock@3" is the third such
 * call alone, "sync,lock+3" all from the third on. Each leaves a line in LOG when it begins to wait: its
 * kind, thread and path. The kernel hands the calls over (seccomp_unotify(2)), so it does not matter who
 * makes them: the program, a library, a child or another language. Exits like the program; 77: the kernel has
 * no such thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, HELD_MAX = 256, LOOK_MS = 10, PATH_BYTES = 4096 };

/* Which argument names the file: a path, or a descriptor. */
enum names { BY_PATH, BY_FILE };

/* A call that older machines alone have is not in the table of newer ones. */
#ifndef __NR_open
#define __NR_open (-1)
#define __NR_stat (-1)
#define __NR_lstat (-1)
#define __NR_access (-1)
#define __NR_readlink (-1)
#define __NR_mkdir (-1)
#define __NR_rename (-1)
#define __NR_unlink (-1)
#endif

static const struct kind {
    const char *name;
    long number;
    enum names by;
    int at;
} kinds[] = {
    {"open", __NR_open, BY_PATH, 0},        {"open", __NR_openat, BY_PATH, 1},
    {"stat", __NR_stat, BY_PATH, 0},        {"stat", __NR_lstat, BY_PATH, 0},
    {"stat", __NR_newfstatat, BY_PATH, 1},  {"stat", __NR_statx, BY_PATH, 1},
    {"stat", __NR_access, BY_PATH, 0},      {"stat", __NR_faccessat, BY_PATH, 1},
    {"stat", __NR_readlink, BY_PATH, 0},    {"stat", __NR_readlinkat, BY_PATH, 1},
    {"lock", __NR_fcntl, BY_FILE, 0},       {"lock", __NR_flock, BY_FILE, 0},
    {"sync", __NR_fsync, BY_FILE, 0},       {"sync", __NR_fdatasync, BY_FILE, 0},
    {"write", __NR_write, BY_FILE, 0},      {"write", __NR_pwrite64, BY_FILE, 0},
    {"write", __NR_ftruncate, BY_FILE, 0},  {"read", __NR_read, BY_FILE, 0},
    {"read", __NR_pread64, BY_FILE, 0},     {"close", __NR_close, BY_FILE, 0},
    {"change", __NR_mkdir, BY_PATH, 0},     {"change", __NR_mkdirat, BY_PATH, 1},
    {"change", __NR_rename, BY_PATH, 1},    {"change", __NR_renameat, BY_PATH, 3},
    {"change", __NR_renameat2, BY_PATH, 3}, {"change", __NR_unlink, BY_PATH, 0},
    {"change", __NR_unlinkat, BY_PATH, 1},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static const char *hangs_while, *log_path, *places;
static unsigned long first = 1, seen; /* the first call that waits */
static bool alone;                    /* the first is the only one */
static uint64_t held[HELD_MAX];
static size_t held_count;

static bool is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Lets the kernel hand over the wanted calls; returns the descriptor to hear of them, or -1. */
static int listen_to(const char *calls)
{
    struct sock_filter filter[2 * KIND_COUNT + 2];
    struct sock_fprog program = {.filter = filter};
    unsigned short count = 0;

    filter[count++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].number < 0 || !is_wanted(calls, kinds[i].name))
            continue;
        filter[count++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)kinds[i].number, 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = count;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Passes the descriptor on; the message is written here, since `write` may already be handed over. */
static void pass(int socket, int file)
{
    char room[CMSG_SPACE(sizeof file)] = {0}, byte = 0;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    (void)sendmsg(socket, &message, 0);
}

static int receive(int socket)
{
    char room[CMSG_SPACE(sizeof(int))], byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    const struct cmsghdr *head;
    int file = -1;

    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0)
        return -1;
    head = CMSG_FIRSTHDR(&message);
    if (head != NULL)
        memcpy(&file, CMSG_DATA(head), sizeof file);
    return file;
}

/* Writes the path of a call's file; false if it has none. */
static bool path_of(const struct kind *kind, const struct seccomp_notif *call, char out[PATH_BYTES])
{
    char link[64];
    ssize_t length;

    if (kind->by == BY_PATH) {
        struct iovec here = {out, PATH_BYTES - 1};
        struct iovec there = {(void *)(uintptr_t)call->data.args[kind->at], PATH_BYTES - 1}; // NOLINT
        size_t page = 4096 - (size_t)call->data.args[kind->at] % 4096;

        /* A path may end at the last page that there is. */
        length = process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0);
        if (length < 0) {
            there.iov_len = page < PATH_BYTES - 1 ? page : PATH_BYTES - 1;
            length = process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0);
        }
    } else {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)call->pid, (int)call->data.args[kind->at]);
        length = readlink(link, out, PATH_BYTES - 1);
    }
    if (length <= 0)
        return false;
    out[length] = '\0';
    return true;
}

static bool is_place(const char *path)
{
    char copy[PATH_BYTES], *rest = copy;
    const char *place;

    snprintf(copy, sizeof copy, "%s", places);
    while ((place = strsep(&rest, ":")) != NULL) {
        if (*place != '\0' && strstr(path, place) != NULL)
            return true;
    }
    return false;
}

/* Of fcntl only what waits for a lock can wait. */
static bool may_wait(const struct seccomp_notif *call)
{
    uint64_t command = call->data.args[1];

    return call->data.nr != __NR_fcntl || command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
           command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

static void answer(int listener, uint64_t id)
{
    struct seccomp_notif_resp response = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Holds a call on one of the places up; returns whether it did. */
static bool hold(const struct seccomp_notif *call)
{
    const struct kind *kind = kinds;
    char path[PATH_BYTES], line[PATH_BYTES + 64];
    int log, length;

    while (kind < kinds + KIND_COUNT && kind->number != call->data.nr)
        kind++;
    if (kind == kinds + KIND_COUNT || !may_wait(call) || held_count == HELD_MAX ||
        !path_of(kind, call, path) || !is_place(path) || access(hangs_while, F_OK) != 0 || ++seen < first ||
        (alone && seen != first))
        return false;
    held[held_count++] = call->id;
    length = snprintf(line, sizeof line, "%s %d %s\n", kind->name, (int)call->pid, path);
    log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log >= 0) {
        (void)!write(log, line, (size_t)length);
        close(log);
    }
    return true;
}

static void hear(int listener)
{
    struct seccomp_notif call = {.id = 0};

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0 && !hold(&call))
        answer(listener, call.id);
}

/* Looks after the calls until no process is left that makes them, or `signals` says something. */
static void look_after(int listener, int signals)
{
    for (;;) {
        struct pollfd sources[] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};

        (void)poll(sources, 2, held_count > 0 ? LOOK_MS : -1);
        if (held_count > 0 && access(hangs_while, F_OK) != 0) {
            while (held_count > 0)
                answer(listener, held[--held_count]);
        }
        if ((sources[0].revents & POLLIN) != 0)
            hear(listener);
        else if ((sources[0].revents & (POLLHUP | POLLERR)) != 0 || (sources[1].revents & POLLIN) != 0)
            return;
    }
}

/* Ends like the program. */
_Noreturn static void end_like(int status)
{
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status)); // NOLINT(concurrency-mt-unsafe)
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

static void look_after_program(int listener, int signals, pid_t program)
{
    struct signalfd_siginfo info;
    int status;

    for (;;) {
        look_after(listener, signals);
        if (read(signals, &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD)
            kill(program, (int)info.ssi_signo);
        if (waitpid(program, &status, WNOHANG) == program)
            break;
    }
    /* What the program left behind still needs somebody who answers. */
    if (fork() == 0) {
        setsid();
        for (int i = 0; i <= STDERR_FILENO; i++)
            close(i);
        look_after(listener, -1);
        _exit(0);
    }
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    end_like(status);
}

int main(int argc, char **argv)
{
    int pair[2], listener;
    sigset_t watched, before;
    pid_t program;
    char *at;

    if (argc < 6) {
        fputs("usage: slow_calls WHILE LOG PLACES CALLS PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    hangs_while = argv[1];
    log_path = argv[2];
    places = argv[3];
    at = argv[4] + strcspn(argv[4], "@+");
    if (*at != '\0') {
        alone = *at == '@';
        first = strtoul(at + 1, NULL, 10);
        *at = '\0';
    }
    sigemptyset(&watched);
    for (const int *number = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *number != 0; number++)
        sigaddset(&watched, *number);
    sigprocmask(SIG_BLOCK, &watched, &before);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return SKIPPED;
    program = fork();
    if (program == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        listener = listen_to(argv[4]);
        if (listener < 0)
            _exit(SKIPPED);
        pass(pair[1], listener);
        fcntl(listener, F_SETFD, FD_CLOEXEC);
        execvp(argv[5], argv + 5);
        _exit(127);
    }
    close(pair[1]);
    listener = program > 0 ? receive(pair[0]) : -1;
    if (listener < 0)
        return SKIPPED;
    look_after_program(listener, signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), program);
}

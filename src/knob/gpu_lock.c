/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses flock(2), because the kernel releases it however its holder ends, and because a duplicate
 * in the guard keeps it. An existing file is opened for reading only: a lock needs no more, and
 * the kernel may forbid to write to others' files in a directory to which all users can write.
 */
#include "knob/gpu_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/harmless.h"
#include "base/number.h"
#include "base/thread/thread_group.h"
#include "knob/fork_close.h"
#include "knob/guard.h"
#include "knob/journal.h"
#include "knob/lock_holder.h"
#include "knob/runtime_directory.h"

enum { HOLDER_MAX = 96, FILE_MAX = 128, HOLDER_ATTEMPTS = 10, MILLISECOND_NS = 1000000 };
/* How long a disk may take; taking a lock waits for a guard that puts back, too. */
static const double answer_most_s = 5.0, take_most_s = 10.0;
enum { SUCCESSORS_MAX = 16, LOOK_ATTEMPTS = 2, GUARD_ATTEMPTS = 100, PAUSE_NS = 20000000 };

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "the lock '%s' cannot be taken: %s; look at its directory's owner and permissions", path,
                     strerror(cause));
}

/* Who holds a lock, according to its file. */
struct holder {
    char text[HOLDER_MAX];
    pid_t pid; /* 0: unknown */
    bool gone; /* there is no such process here any more: the guard of that session may hold the lock */
};

/*
 * Reads who holds the lock; a process that just took it may not have written that yet. Behind the text and a
 * zero stands when the process began, since another may have its pid by now.
 */
static void read_holder(int lock, struct holder *out_holder)
{
    char text[FILE_MAX] = "";
    ssize_t length = 0;
    const char *number;
    size_t end;
    uint64_t pid = 0, start_ticks = 0;

    for (int i = 0; i < HOLDER_ATTEMPTS && length <= 0; i++) {
        if (i > 0)
            mono_sleep_s(1e-3);
        length = pread(lock, text, sizeof text - 2, 0);
    }
    end = strlen(text);
    if (length > 0 && end + 1 < (size_t)length)
        (void)number_parse_u64(text + end + 1, UINT64_MAX, &start_ticks);
    snprintf(out_holder->text, HOLDER_MAX, "%.*s", HOLDER_MAX - 1, text);
    harmless_make_ascii(out_holder->text);
    number = strrchr(out_holder->text, ' ');
    if (number == NULL || !number_parse_u64(number + 1, INT32_MAX, &pid))
        pid = 0;
    out_holder->pid = (pid_t)pid;
    out_holder->gone = pid != 0 && ((kill((pid_t)pid, 0) < 0 && errno == ESRCH) ||
                                    (start_ticks != 0 && journal_start_of((pid_t)pid) != start_ticks));
    if (out_holder->text[0] == '\0')
        snprintf(out_holder->text, HOLDER_MAX, "another program");
}

static bool is_guard(pid_t pid)
{
    char path[64], name[32] = "";
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/comm", (long long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, name, sizeof name - 1);
        close(fd);
    }
    return strncmp(name, GUARD_PROGRAM, strlen(GUARD_PROGRAM)) == 0;
}

/* Says who really holds the lock: a session, or after its end whoever puts back. */
static void say_holder(int lock, const struct holder *holder, char text[GPU_LOCK_HOLDER_MAX])
{
    struct lock_holder found;

    if (!holder->gone)
        snprintf(text, GPU_LOCK_HOLDER_MAX, "%s", holder->text);
    else if (lock_holder_find(lock, &found))
        snprintf(text, GPU_LOCK_HOLDER_MAX, "process %lld, %s of %s, which has ended", (long long)found.pid,
                 is_guard(found.pid) ? "the guard" : "a child perhaps", holder->text);
    else
        snprintf(text, GPU_LOCK_HOLDER_MAX,
                 "%s, which is not here any more, or by its guard; what holds them cannot be seen from here",
                 holder->text);
}

/* Only people read this: after a failure the lock has no name. */
static void write_holder(const char *path, const char *program)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    char text[FILE_MAX];
    int length = snprintf(text, sizeof text, "'%.60s', process %lld", program, (long long)getpid()) + 1;

    if (fd < 0)
        return;
    length += snprintf(text + length, sizeof text - (size_t)length, "%llu",
                       (unsigned long long)journal_start_of(getpid()));
    /* A file with a second name belongs to somebody, who wants this process to overwrite it. */
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 && ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)length, 0);
    close(fd);
}

static int open_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0) {
        (void)fchmod(fd, 0666); /* whatever the umask: others must read who holds it, and write it */
        return fd;
    }
    return errno == EEXIST ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
}

/* Returns whether a holder will soon be done. */
static bool is_soon_done(const struct holder *holder)
{
    return holder->gone || strstr(holder->text, GPU_LOCK_BRIEFLY "'") != NULL;
}

/*
 * Takes the lock; if its holder died, waits for the guard to put back. A process that merely
 * looks who holds the lock also holds it for a moment. Returns 0 or an errno.
 */
static int take(int lock, char text[GPU_LOCK_HOLDER_MAX])
{
    struct holder holder;

    for (int attempt = 0;; attempt++) {
        int cause;

        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return 0;
        cause = errno;
        if (cause != EWOULDBLOCK)
            return cause;
        read_holder(lock, &holder);
        if (attempt == GUARD_ATTEMPTS || (attempt >= LOOK_ATTEMPTS && !is_soon_done(&holder))) {
            say_holder(lock, &holder, text);
            return cause;
        }
        mono_sleep_s(PAUSE_NS * 1e-9);
    }
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool is_named(int lock, const char *path)
{
    struct stat held, named;

    return fstat(lock, &held) == 0 && lstat(path, &named) == 0 && is_same(&held, &named);
}

/* Opens and takes the lock, again if root replaced the file in between. Returns 0 or an errno. */
static int open_and_take(const char *path, char holder[GPU_LOCK_HOLDER_MAX], int *out_lock)
{
    int cause = EWOULDBLOCK;

    snprintf(holder, GPU_LOCK_HOLDER_MAX, "another program");
    for (int attempt = 0; attempt < SUCCESSORS_MAX; attempt++) {
        int lock = open_lock(path);

        if (lock < 0)
            return errno;
        cause = take(lock, holder);
        if (cause == 0 && is_named(lock, path)) {
            *out_lock = lock;
            return 0;
        }
        close(lock);
        if (cause != 0)
            return cause;
    }
    return EWOULDBLOCK;
}

/* What is done with a lock's file, in a copy, since a disk may hold it up for longer than a session waits. */
struct lock_call {
    char path[JOURNAL_PATH_MAX], holder[GPU_LOCK_HOLDER_MAX], program[FILE_MAX];
    int lock; /* -1: there is none */
    int cause;
};

static struct lock_call *new_call(const char *path, const char *program, int lock)
{
    struct lock_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    snprintf(call->path, sizeof call->path, "%s", path);
    snprintf(call->program, sizeof call->program, "%s", program);
    call->lock = lock;
    return call;
}

static void look_now(void *of)
{
    struct lock_call *call = of;

    call->cause = access(call->path, F_OK) == 0 && !is_named(call->lock, call->path) ? ESTALE : 0;
}

bool gpu_lock_stands(const char *directory, const char *uuid, int lock)
{
    char path[JOURNAL_PATH_MAX];
    struct lock_call *call;
    bool stands;

    if (journal_path(directory, uuid, ".lock", path, NULL) < 0)
        return true;
    call = new_call(path, "", lock);
    if (call == NULL || !runtime_directory_call(look_now, free, call, answer_most_s))
        return true;
    stands = call->cause == 0;
    free(call);
    return stands;
}

static void take_now(void *of)
{
    struct lock_call *call = of;

    call->cause = open_and_take(call->path, call->holder, &call->lock);
    if (call->cause == 0)
        write_holder(call->path, call->program);
}

static void drop_taken(void *of)
{
    struct lock_call *call = of;

    if (call->lock >= 0)
        close(call->lock);
    free(call);
}

int gpu_lock_take(const char *directory, const char *uuid, const char *program, int *out_lock,
                  struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX];
    struct lock_call *call;
    int code = journal_path(directory, uuid, ".lock", path, out_error);

    if (code < 0)
        return code;
    call = new_call(path, program, -1);
    if (call == NULL)
        return error_no_memory(out_error);
    if (!runtime_directory_call(take_now, drop_taken, call, take_most_s))
        return runtime_directory_silent(path, out_error);
    if (call->cause == EWOULDBLOCK)
        code =
            error_set(out_error, FLY_ESTATE, "the knobs of the GPU '%s' are held by %s; wait for it to end%s",
                      uuid, call->holder, call->holder[0] == '\'' ? ", or end it" : "");
    else if (call->cause != 0)
        code = failed(path, call->cause, out_error);
    else
        *out_lock = fork_close_add(call->lock);
    free(call);
    return code;
}

/* Opens, and makes if needed, a file that only root may open, and so lock; returns -1 with errno. */
static int open_roots_own(const char *path)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
        struct stat status;

        if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == 0 &&
            status.st_nlink == 1 && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
            return fd;
        if (fd >= 0)
            close(fd);
        errno = runtime_directory_make_room(path);
        if (errno != 0)
            return -1;
    }
    errno = EPERM;
    return -1;
}

/* Makes a new file of that name, locked before others can open it; returns -1 with errno. */
static int succeed(const char *path)
{
    int lock, cause = runtime_directory_make_room(path);

    if (cause == 0) {
        lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
        if (lock < 0)
            return -1;
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
            (void)fchmod(lock, 0666);
            return lock;
        }
        cause = errno;
        close(lock);
    }
    errno = cause;
    return -1;
}

int gpu_lock_replace(const char *directory, const char *uuid, const char *program, const struct stat *held,
                     int *out_lock, struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX], own[JOURNAL_PATH_MAX], holder[GPU_LOCK_HOLDER_MAX];
    int lock, turn, cause, code = journal_path(directory, uuid, ".lock", path, out_error);
    struct stat named;

    if (code < 0)
        return code;
    snprintf(own, sizeof own, "%.480s/.root", directory);
    turn = open_roots_own(own);
    if (turn < 0)
        return failed(own, errno, out_error);
    cause = take(turn, holder);
    if (cause == 0 && lstat(path, &named) == 0 && !is_same(&named, held))
        cause = EWOULDBLOCK;
    lock = cause == 0 ? succeed(path) : -1;
    if (cause == 0 && lock < 0)
        cause = errno;
    close(turn);
    if (cause == EWOULDBLOCK)
        return error_set(out_error, FLY_ESTATE,
                         "the knobs of the GPU '%s' were taken by another program of root's; try again",
                         uuid);
    if (cause != 0)
        return failed(path, cause, out_error);
    write_holder(path, program);
    *out_lock = fork_close_add(lock);
    return 0;
}

int gpu_lock_holder(const char *directory, const char *uuid, char out_holder[GPU_LOCK_HOLDER_MAX],
                    struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX];
    int lock, code = journal_path(directory, uuid, ".lock", path, out_error);
    struct holder holder;
    bool held;

    if (code < 0)
        return code;
    lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock < 0 && errno == ENOENT)
        return 0;
    if (lock < 0)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_EREAD,
                         "the lock '%s' cannot be looked at: %s", path, strerror(errno));
    held = flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (held) {
        read_holder(lock, &holder);
        say_holder(lock, &holder, out_holder);
    }
    close(lock);
    return held ? 1 : 0;
}

bool gpu_lock_is_held_by(const char *directory, const char *uuid, pid_t pid)
{
    char path[JOURNAL_PATH_MAX];
    bool held;
    int lock;

    if (journal_path(directory, uuid, ".lock", path, NULL) < 0)
        return false;
    lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    held = lock >= 0 && lock_holder_is(lock, pid);
    if (lock >= 0)
        close(lock);
    return held;
}

static void close_now(void *of)
{
    const struct lock_call *call = of;

    fork_close_now(call->lock);
}

void gpu_lock_release(int lock)
{
    struct lock_call *call = lock >= 0 ? new_call("", "", lock) : NULL;

    if (call == NULL)
        fork_close_now(lock);
    else if (apart_run(close_now, free, call, answer_most_s))
        free(call);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flock(2), because it is let go of however its holder ends, and because a duplicate in the
 * guard keeps it. The file is opened for reading by who finds it: a lock needs no more, and
 * the kernel may forbid to write to files of others in a directory that all write to.
 */
#include "knob/gpu_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "knob/fork_close.h"
#include "knob/journal.h"

enum { HOLDER_MAX = GPU_LOCK_HOLDER_MAX, HOLDER_ATTEMPTS = 10, MILLISECOND_NS = 1000000 };
enum { LOOK_ATTEMPTS = 2, GUARD_ATTEMPTS = 100, PAUSE_NS = 20000000 };

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "the lock '%s' cannot be taken: %s; look at its directory's owner and permissions", path,
                     strerror(cause));
}

/* Who holds it, as written by the holder; who took it this moment has yet to write. */
static void read_holder(int lock, char holder[HOLDER_MAX])
{
    const struct timespec pause = {.tv_nsec = MILLISECOND_NS};
    ssize_t length = 0;

    for (int i = 0; i < HOLDER_ATTEMPTS && length <= 0; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        length = pread(lock, holder, HOLDER_MAX - 1, 0);
    }
    holder[length > 0 ? length : 0] = '\0';
    for (char *at = holder; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            *at = '?';
    }
    if (holder[0] == '\0')
        snprintf(holder, HOLDER_MAX, "another program");
}

/* Only to be read by people: a failure leaves a lock without a name. */
static void write_holder(const char *path, const char *program)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char text[HOLDER_MAX];
    int length = snprintf(text, sizeof text, "'%.60s', process %lld", program, (long long)getpid());

    if (fd < 0)
        return;
    if (ftruncate(fd, 0) == 0)
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
        (void)fchmod(fd, 0666); /* whatever the umask: others are to learn who holds it, and to say it */
        return fd;
    }
    return errno == EEXIST ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
}

/* Whether the process that the text names is gone, so that only its guard can hold the lock still. */
static bool holder_is_gone(const char *holder)
{
    const char *number = strrchr(holder, ' ');
    uint64_t pid;

    return number != NULL && number_parse_u64(number + 1, INT32_MAX, &pid) && pid > 0 &&
           kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/*
 * Takes the lock; where its holder died, waits for the guard to put back. Who merely looks
 * who holds it holds it for a moment too. 0 or an errno.
 */
static int take(int lock, char holder[HOLDER_MAX])
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    for (int attempt = 0;; attempt++) {
        int cause;

        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return 0;
        cause = errno;
        if (cause != EWOULDBLOCK)
            return cause;
        read_holder(lock, holder);
        if (attempt == GUARD_ATTEMPTS || (attempt >= LOOK_ATTEMPTS && !holder_is_gone(holder)))
            return cause;
        nanosleep(&pause, NULL);
    }
}

int gpu_lock_take(const char *directory, const char *uuid, const char *program, int *out_lock,
                  struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX], holder[HOLDER_MAX];
    int lock, cause, code = journal_path(directory, uuid, ".lock", path, out_error);

    if (code < 0)
        return code;
    lock = open_lock(path);
    if (lock < 0)
        return failed(path, errno, out_error);
    cause = take(lock, holder);
    if (cause != 0) {
        close(lock);
        if (cause != EWOULDBLOCK)
            return failed(path, cause, out_error);
        return error_set(out_error, FLY_ESTATE,
                         "the knobs of the GPU '%s' are held by %s; wait for it to end, or end it", uuid,
                         holder);
    }
    write_holder(path, program);
    *out_lock = fork_close_add(lock);
    return 0;
}

int gpu_lock_holder(const char *directory, const char *uuid, char out_holder[GPU_LOCK_HOLDER_MAX],
                    struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX];
    int lock, code = journal_path(directory, uuid, ".lock", path, out_error);
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
    if (held)
        read_holder(lock, out_holder);
    close(lock);
    return held ? 1 : 0;
}

void gpu_lock_release(int lock)
{
    fork_close_now(lock);
}

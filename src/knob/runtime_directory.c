/* SPDX-License-Identifier: Apache-2.0 */
/* Finds or makes the directory that all users of a machine share. */
#include "knob/runtime_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/file_system.h"
#include "base/thread/fork_guard.h"
#include "base/thread/thread_group.h"

static const char system_directory[] = "/run/flyball", fallback_directory[] = "/tmp/flyball-knobs";
static const char daemon_name[] = "daemon";
/* How long a disk may take to open the directory. */
static const double answer_most_s = 2.0;
enum { SHARED_MODE = 01777, ASIDE_MAX = 64, UID_MAP_LINE = 64 };

/* Used in place of an errno: root must not leave entries with somebody who can change them. */
enum { OF_ANOTHER_USER = -1 };

bool runtime_directory_is_roots(void)
{
    unsigned long long inside = 0, outside = 0, count = UINT32_MAX;
    char line[UID_MAP_LINE] = "", *at = line;
    FILE *map = geteuid() == 0 ? fopen("/proc/self/uid_map", "re") : NULL;

    if (map != NULL && fgets(line, sizeof line, map) != NULL) {
        inside = strtoull(at, &at, 10);
        outside = strtoull(at, &at, 10);
        count = strtoull(at, &at, 10);
    }
    if (map != NULL)
        fclose(map);
    return geteuid() == 0 && inside == 0 && outside == 0 && count == UINT32_MAX;
}

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    if (cause == OF_ANOTHER_USER)
        return error_set(
            out_error, FLY_EPERM,
            "the directory '%s' for locks of GPUs belongs to another user, who can change what root "
            "writes there; 'chown root' it, or name another in FLYBALL_RUNTIME_DIR",
            path);
    return error_set(out_error, cause == EACCES || cause == EPERM || cause == EROFS ? FLY_EPERM : FLY_EWRITE,
                     "the directory '%s' for locks of GPUs cannot be used: %s; 'install -d -m 1777 "
                     "/run/flyball' as root makes one, or name another in "
                     "FLYBALL_RUNTIME_DIR",
                     path, strerror(cause));
}

/*
 * Makes the directory if it is missing; for all users if `mode` says so, whatever the umask.
 * Returns 0 or errno.
 */
static int make(const char *path, mode_t mode)
{
    struct stat status;

    if (mkdir(path, S_IRWXU) == 0)
        return chmod(path, mode) == 0 ? 0 : errno;
    if (errno != EEXIST)
        return errno;
    if (lstat(path, &status) < 0)
        return errno;
    if (S_ISLNK(status.st_mode) && (status.st_uid != 0 && status.st_uid != geteuid()))
        return ELOOP;
    if (stat(path, &status) < 0)
        return errno;
    if (!S_ISDIR(status.st_mode))
        return ENOTDIR;
    if (runtime_directory_is_roots() && status.st_uid != 0)
        return OF_ANOTHER_USER;
    /* If others may remove files that are not theirs, locks are useless. */
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0)
        return EPERM;
    return access(path, W_OK | X_OK) == 0 ? 0 : errno;
}

/* Moves a directory with content aside; nothing in it is Flyball's. */
static int move_aside(const char *path)
{
    const char *slash = strrchr(path, '/');
    char aside[PATH_MAX];
    int cause = ENAMETOOLONG;

    for (unsigned i = 0; i < ASIDE_MAX; i++) {
        int length = snprintf(aside, sizeof aside, "%.*s/.aside-%lld-%u",
                              slash != NULL ? (int)(slash - path) : 0, path, (long long)getpid(), i);

        if (length >= (int)sizeof aside)
            return ENAMETOOLONG;
        if (access(aside, F_OK) == 0)
            continue;
        if (rename(path, aside) == 0)
            return 0;
        cause = errno;
    }
    return cause;
}

int runtime_directory_make_room(const char *path)
{
    int cause;

    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    cause = errno;
    if (!runtime_directory_is_roots())
        return cause;
    return rmdir(path) == 0 ? 0 : move_aside(path);
}

static int check_local(const char *path, struct fly_error *out_error)
{
    struct statfs status;
    const char *network;

    if (statfs(path, &status) < 0)
        return failed(path, errno, out_error);
    /* FUSE serves local file systems too, but they cannot be told apart here. */
    network = file_system_network((long)status.f_type);
    if (network == NULL)
        return 0;
    return error_set(out_error, FLY_EUNSUPPORTED,
                     "the directory '%s' for locks of GPUs lies on a network file system (%s); name one on a "
                     "local disk or in memory in FLYBALL_RUNTIME_DIR, such as '/run/flyball'",
                     path, network);
}

static int use(const char *path, mode_t mode, char out_path[RUNTIME_PATH_MAX], struct fly_error *out_error)
{
    int cause, code;

    if (strlen(path) >= RUNTIME_PATH_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "the path '%.40s...' is longer than %d bytes; choose a shorter one", path,
                         RUNTIME_PATH_MAX - 1);
    cause = make(path, mode);
    if (cause != 0)
        return failed(path, cause, out_error);
    code = check_local(path, out_error);
    if (code == 0)
        snprintf(out_path, RUNTIME_PATH_MAX, "%s", path);
    return code;
}

/* One call has not come back, in the process of that number: no other waits for that disk. */
static _Atomic uint64_t hung_in;

static uint64_t this_process(void)
{
    return fork_generation() + 1;
}

struct call {
    void (*run)(void *state);
    void (*drop)(void *state);
    void *state;
};

static void run_call(void *of)
{
    const struct call *call = of;

    call->run(call->state);
}

static void drop_call(void *of)
{
    struct call *call = of;

    call->drop(call->state);
    free(call);
    atomic_store(&hung_in, 0);
}

bool runtime_directory_call(void (*run)(void *state), void (*drop)(void *state), void *state,
                            double patience_s)
{
    struct call *call = NULL;

    if (atomic_load(&hung_in) == this_process()) {
        drop(state);
        return false;
    }
    call = malloc(sizeof *call);
    if (call == NULL) {
        run(state);
        return true;
    }
    *call = (struct call){run, drop, state};
    if (apart_run(run_call, drop_call, call, patience_s)) {
        free(call);
        return true;
    }
    atomic_store(&hung_in, this_process());
    return false;
}

int runtime_directory_silent(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EBUSY,
                     "the disk with '%s' does not answer, so no knob is turned; see the kernel's log, or "
                     "name another directory in FLYBALL_RUNTIME_DIR",
                     path);
}

/* What a thread finds out about a directory; it may wait for the disk for ever. */
struct trial {
    char path[RUNTIME_PATH_MAX];
    mode_t mode; /* with which to make it; 0: it is not made */
    int code;
    struct fly_error error;
};

static void try_directory(void *of)
{
    struct trial *trial = of;
    char path[RUNTIME_PATH_MAX];
    int fd = -1;

    if (trial->mode != 0)
        trial->code = use(trial->path, trial->mode, path, &trial->error);
    else if (access(trial->path, R_OK | X_OK) < 0)
        trial->code = FLY_ENOTFOUND;
    if (trial->code == 0)
        fd = open(trial->path, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return;
    (void)flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
}

/* Makes the directory, if there is a mode, or looks whether it is there. */
static int try_in_time(const char *path, mode_t mode, struct fly_error *out_error)
{
    struct trial *trial = calloc(1, sizeof *trial);
    int code;

    if (trial == NULL)
        return error_no_memory(out_error);
    snprintf(trial->path, sizeof trial->path, "%s", path);
    trial->mode = mode;
    if (!runtime_directory_call(try_directory, free, trial, answer_most_s))
        return runtime_directory_silent(path, out_error);
    code = trial->code;
    if (code < 0)
        error_set(out_error, code, "%s", trial->error.text);
    free(trial);
    return code;
}

/* Chooses the directory, and the mode with which it is made. */
static const char *choose(const char *given, mode_t *out_mode)
{
    *out_mode = S_IRWXU;
    if (given == NULL || given[0] == '\0')
        given = getenv(KNOB_RUNTIME_VARIABLE);
    if (given != NULL && given[0] != '\0')
        return given;
    *out_mode = SHARED_MODE;
    return geteuid() == 0 || access(system_directory, F_OK) == 0 ? system_directory : fallback_directory;
}

int runtime_directory_find(const char *given, char out_path[RUNTIME_PATH_MAX], struct fly_error *out_error)
{
    mode_t mode;
    const char *path = choose(given, &mode);
    int code;

    if (path[0] != '/')
        return error_set(out_error, FLY_EUSAGE,
                         "the directory '%s' for locks of GPUs has to begin with '/'; name it in full", path);
    if (strlen(path) >= RUNTIME_PATH_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "the path '%.40s...' is longer than %d bytes; choose a shorter one", path,
                         RUNTIME_PATH_MAX - 1);
    code = try_in_time(path, mode, out_error);
    if (code == 0)
        snprintf(out_path, RUNTIME_PATH_MAX, "%s", path);
    return code;
}

bool runtime_directory_look(const char *given, char out_path[RUNTIME_PATH_MAX])
{
    mode_t mode;
    const char *path = choose(given, &mode);

    if (path[0] != '/' || strlen(path) >= RUNTIME_PATH_MAX || try_in_time(path, 0, NULL) < 0)
        return false;
    snprintf(out_path, RUNTIME_PATH_MAX, "%s", path);
    return true;
}

static bool daemon_path(const char *directory, char path[RUNTIME_PATH_MAX])
{
    return snprintf(path, RUNTIME_PATH_MAX, "%s/%s", directory, daemon_name) < RUNTIME_PATH_MAX;
}

static void look_for_own(void *of)
{
    struct trial *trial = of;
    struct stat status;

    if (lstat(trial->path, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        trial->code = FLY_ENOTFOUND;
}

bool runtime_directory_look_daemon(const char *directory, char out_path[RUNTIME_PATH_MAX])
{
    struct trial *trial = calloc(1, sizeof *trial);
    bool found;

    if (trial == NULL)
        return false;
    if (!daemon_path(directory, trial->path)) {
        free(trial);
        return false;
    }
    if (!runtime_directory_call(look_for_own, free, trial, answer_most_s))
        return false;
    found = trial->code == 0;
    if (found)
        memcpy(out_path, trial->path, sizeof trial->path);
    free(trial);
    return found;
}

int runtime_directory_of_daemon(const char *directory, char out_path[RUNTIME_PATH_MAX],
                                struct fly_error *out_error)
{
    char path[RUNTIME_PATH_MAX];
    int cause;

    if (!daemon_path(directory, path))
        return failed(directory, ENAMETOOLONG, out_error);
    if (runtime_directory_look_daemon(directory, out_path))
        return 0;
    /* Somebody else may have put something there first. */
    cause = runtime_directory_make_room(path);
    return cause != 0 ? failed(path, cause, out_error) : use(path, S_IRWXU, out_path, out_error);
}

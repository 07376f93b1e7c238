/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the file itself, so that it is private from its first moment; SQLite gives its companions
 * (-wal, -shm) the same mode. This code never has a descriptor of the file, since closing that would drop
 * the locks that other handles of this process hold on it: mknod makes a file without one.
 */
#include "store/sqlite_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/user_directory.h"
#include "base/thread/fork_guard.h"
#include "base/thread/fork_lock.h"

static const char standard_name[] = "store.sqlite";

/* Files that SQLite has open in this process, or had in one from which it was forked. */
struct held {
    struct held *next;
    dev_t device;
    ino_t inode;
    uint64_t generation; /* value of fork_generation */
};
static struct held *held_files;
static struct fork_lock held_lock = FORK_LOCK_INIT;

static int failed(const char *doing, const char *path, int cause, struct fly_error *out_error)
{
    int code = cause == EACCES || cause == EPERM || cause == EROFS ? FLY_EPERM
               : cause == ENOENT || cause == ENOTDIR               ? FLY_ENOTFOUND
                                                                   : FLY_EWRITE;
    const char *remedy = code == FLY_EPERM       ? "ask for the right to write there, or name another path"
                         : code == FLY_ENOTFOUND ? "make its directory first, or name another path"
                                                 : "mend that, or name another path";

    return error_set(out_error, code, "the store '%.200s' cannot be %s: %s; %s", path, doing, strerror(cause),
                     remedy);
}

int sqlite_file_missing(const char *path, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_ENOTFOUND,
        "there is no store '%.200s'; look at its name, or name another; a training of a job makes one", path);
}

static int find_standard(char path[PATH_MAX], bool existing, struct fly_error *out_error)
{
    int cause, code = user_directory_find(USER_STATE, standard_name, "the store", path, PATH_MAX, out_error);

    if (code < 0)
        return code;
    if (existing)
        return user_directory_is_closed() ? sqlite_file_missing(path, out_error) : 0;
    cause = user_directory_make_above(path, S_IRWXU);
    return cause == 0 ? 0 : failed("made", path, cause, out_error);
}

/* Writes the directory of a path, with symbolic links followed, into `out`. */
static int find_directory(const char *path, char out[PATH_MAX], struct fly_error *out_error)
{
    const char *slash = strrchr(path, '/');
    char given[PATH_MAX];

    if (strlen(path) >= PATH_MAX)
        return error_set(out_error, FLY_ELIMIT, "the path of the store '%.100s...' is too long; name another",
                         path);
    if (slash == NULL)
        memcpy(given, ".", 2);
    else
        snprintf(given, sizeof given, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return realpath(given, out) != NULL ? 0 : failed("reached", path, errno, out_error);
}

static int check_local(const char *directory, const char *path, const struct file_system_source *source,
                       struct fly_error *out_error)
{
    char network[FILE_SYSTEM_NAME_MAX];
    int code = file_system_find_network(directory, source, network, out_error);

    if (code < 0 || network[0] == '\0')
        return code;
    return error_set(
        out_error, FLY_EUNSUPPORTED,
        "the store '%.200s' lies on a network file system (%s), where locks cannot be relied on; "
        "%s",
        path, network, STORE_WAYS_OUT);
}

/* Writes the absolute path, with links followed if the file exists; returns 0 or errno. */
static int name_in_full(const char *directory, const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    char whole[PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);

    if (length < 0 || (size_t)length >= sizeof whole)
        return ENAMETOOLONG;
    if (realpath(whole, out) == NULL)
        memcpy(out, whole, (size_t)length + 1);
    return 0;
}

/* Gives the file's absolute path, and makes the file if it is missing and may be made; returns 0 or errno. */
static int make_file(const char *directory, const char *path, bool existing, char out[PATH_MAX])
{
    char whole[PATH_MAX];
    int cause = name_in_full(directory, path, whole);

    if (cause != 0)
        return cause;
    if (!existing && mknod(whole, S_IFREG | S_IRUSR | S_IWUSR, 0) < 0 && errno != EEXIST)
        return errno;
    return realpath(whole, out) != NULL ? 0 : errno;
}

static int take(const char *path, const char *directory, bool existing, struct sqlite_file *file,
                struct fly_error *out_error)
{
    struct stat status;
    int cause = make_file(directory, path, existing, file->path);

    if (existing && cause == ENOENT)
        return sqlite_file_missing(path, out_error);
    if (cause == 0 && stat(file->path, &status) < 0)
        cause = errno;
    if (cause != 0)
        return failed("made", path, cause, out_error);
    if (!S_ISREG(status.st_mode))
        return error_set(out_error, FLY_EDATA, "the store '%.200s' is no ordinary file; name another path",
                         path);
    if (existing && status.st_size == 0)
        return sqlite_file_missing(path, out_error);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->held = false;
    return 0;
}

/* Gives the given path, or that of the user's own file, and its directory. */
static int find_place(const char **path, bool existing, const struct file_system_source *source,
                      char standard[PATH_MAX], char directory[PATH_MAX], struct fly_error *out_error)
{
    int code;

    if (*path == NULL) {
        code = find_standard(standard, existing, out_error);
        if (code < 0)
            return code;
        *path = standard;
    }
    code = find_directory(*path, directory, out_error);
    if (code == FLY_ENOTFOUND && existing)
        return sqlite_file_missing(*path, out_error);
    return code == 0 ? check_local(directory, *path, source, out_error) : code;
}

int sqlite_file_place(const char *path, const struct file_system_source *source, char out_path[PATH_MAX],
                      struct fly_error *out_error)
{
    char standard[PATH_MAX], directory[PATH_MAX];
    int cause, code = find_place(&path, false, source, standard, directory, out_error);

    if (code < 0)
        return code;
    cause = name_in_full(directory, path, out_path);
    return cause == 0 ? 0 : failed("reached", path, cause, out_error);
}

int sqlite_file_take(const char *path, bool existing, const struct file_system_source *source,
                     struct sqlite_file *out_file, struct fly_error *out_error)
{
    char standard[PATH_MAX], directory[PATH_MAX];
    struct sqlite_file file;
    int code = find_place(&path, existing, source, standard, directory, out_error);

    if (code < 0)
        return code;
    (void)fork_generation();
    code = take(path, directory, existing, &file, out_error);
    if (code == 0)
        *out_file = file;
    return code;
}

bool sqlite_file_of_parent(dev_t device, ino_t inode)
{
    bool found = false;

    fork_lock_take(&held_lock);
    for (const struct held *held = held_files; held != NULL && !found; held = held->next)
        found = held->device == device && held->inode == inode && held->generation != fork_generation();
    fork_lock_give(&held_lock);
    return found;
}

int sqlite_file_hold(struct sqlite_file *file, struct fly_error *out_error)
{
    struct held *held = malloc(sizeof *held);

    if (held == NULL)
        return error_no_memory(out_error);
    *held = (struct held){NULL, file->device, file->inode, fork_generation()};
    fork_lock_take(&held_lock);
    held->next = held_files;
    held_files = held;
    fork_lock_give(&held_lock);
    file->held = true;
    return 0;
}

void sqlite_file_release(struct sqlite_file *file)
{
    struct held *released = NULL;

    if (!file->held)
        return;
    fork_lock_take(&held_lock);
    for (struct held **place = &held_files; *place != NULL; place = &(*place)->next) {
        if ((*place)->device == file->device && (*place)->inode == file->inode &&
            (*place)->generation == fork_generation()) {
            released = *place;
            *place = released->next;
            break;
        }
    }
    fork_lock_give(&held_lock);
    free(released);
    file->held = false;
}

bool sqlite_file_stands(const struct sqlite_file *file)
{
    struct stat status;

    return stat(file->path, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode;
}

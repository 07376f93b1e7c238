/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/user_directory.h"
#include "store/store_address.h"

enum { ROOM_BYTES = 1 << 20 };

/* Asks the file system's own figures, if it knows neither files without a name nor reserving room. */
static int ask_file_system(const char *directory)
{
    struct statvfs status;

    if (statvfs(directory, &status) != 0)
        return errno;
    if ((status.f_flag & ST_RDONLY) != 0)
        return EROFS;
    return (uint64_t)status.f_bavail * status.f_frsize < ROOM_BYTES ? ENOSPC : 0;
}

/* Returns 0 or errno. */
static int take_room(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    int cause = fd < 0 ? errno : 0;

    if (cause == 0 && fallocate(fd, 0, 0, ROOM_BYTES) != 0)
        cause = errno;
    if (fd >= 0)
        close(fd);
    return cause == EOPNOTSUPP || cause == EISDIR || cause == EINVAL ? ask_file_system(directory) : cause;
}

/* Finds where the store's file lies, or would lie. */
static int find_path(const char *store, char path[PATH_MAX], struct fly_error *out_error)
{
    struct store_address address;
    int code = store_address_parse(store, &address, out_error);

    if (code < 0)
        return code;
    if (address.place != STORE_IN_FILE)
        return error_set(out_error, FLY_EUNSUPPORTED, "the disk of a database server is not seen from here");
    if (address.text == NULL)
        return user_directory_find(USER_STATE, "store.sqlite", "the store", path, PATH_MAX, out_error);
    snprintf(path, PATH_MAX, "%s", address.text);
    return 0;
}

int disk_check(const char *store, struct fly_error *out_error)
{
    char path[PATH_MAX], real[PATH_MAX];
    const char *directory;
    int code = find_path(store, path, out_error), cause;

    if (code < 0)
        return code;
    directory = dirname(realpath(path, real) != NULL ? real : path); /* a link may lead to another disk */
    cause = take_room(directory);
    if (cause == 0)
        return 0;
    return error_set(out_error, FLY_EWRITE, "a MiB cannot be written in '%.300s', where the store lies: %s",
                     directory, strerror(cause));
}

static int is_away(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EUNREACHABLE, "the store '%.300s' is not there: %s", path,
                     strerror(errno));
}

int disk_hold_store(const char *store, struct disk_file *out_file, struct fly_error *out_error)
{
    char path[PATH_MAX];
    struct stat status;
    int code = find_path(store, path, out_error), fd;

    if (code < 0)
        return code;
    fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return is_away(path, out_error);
    if (fstat(fd, &status) != 0) {
        code = is_away(path, out_error);
        close(fd);
        return code;
    }
    out_file->fd = fd;
    out_file->device = status.st_dev;
    out_file->inode = status.st_ino;
    return 0;
}

void disk_release(struct disk_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

int disk_is_store(const char *store, const struct disk_file *file, struct fly_error *out_error)
{
    char path[PATH_MAX];
    struct stat status;
    int code = find_path(store, path, out_error);

    if (code < 0)
        return code;
    if (stat(path, &status) != 0)
        return is_away(path, out_error);
    if (status.st_dev == file->device && status.st_ino == file->inode)
        return 0;
    return error_set(out_error, FLY_EUNREACHABLE,
                     "another file lies in the place of the store '%.300s'; put the right one back, or "
                     "restart the service to serve that one",
                     path);
}

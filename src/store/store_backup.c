/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a store that may be in use with SQLite's own backup, which includes what its log holds. */
#include "store/store_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/sqlite_link.h"
#include "store/store_copy_private.h"

static const double wait_s = 10.0;

static int vacuum_into(struct sqlite_link *link, const char *path, struct fly_error *out_error)
{
    sqlite3_stmt *statement = NULL;
    int code = 0;

    if (sqlite3_prepare_v2(link->db, "VACUUM INTO ?1", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_DONE)
        code = copy_sqlite_failed(link->db, path, "written", out_error);
    sqlite3_finalize(statement);
    return code;
}

static int sync_path(const char *path, int flags, struct fly_error *out_error)
{
    int fd = open(path, flags | O_CLOEXEC), cause = 0;

    if (fd < 0 || fsync(fd) < 0)
        cause = errno;
    if (fd >= 0)
        close(fd);
    /* Some file systems cannot sync a directory. */
    return cause == 0 || (cause == EINVAL && (flags & O_DIRECTORY) != 0)
               ? 0
               : copy_failed(path, "synced", cause, out_error);
}

static int sync_directory(const char *path, struct fly_error *out_error)
{
    char directory[COPY_NAME_MAX];
    char *slash;

    snprintf(directory, sizeof directory, "%s", path);
    slash = strrchr(directory, '/');
    if (slash == NULL)
        return sync_path(".", O_RDONLY | O_DIRECTORY, out_error);
    slash[slash == directory ? 1 : 0] = '\0';
    return sync_path(directory, O_RDONLY | O_DIRECTORY, out_error);
}

/* Gives the file its name, which must not exist. */
static int name_file(const char *temporary, const char *path, struct fly_error *out_error)
{
    struct stat status;

    if (link(temporary, path) == 0) {
        unlink(temporary);
        return sync_directory(path, out_error);
    }
    if (errno == EEXIST || lstat(path, &status) == 0)
        return copy_there_already(path, out_error);
    /* For file systems without hard links. */
    if (rename(temporary, path) < 0)
        return copy_failed(path, "made", errno, out_error);
    return sync_directory(path, out_error);
}

static int fill_copy(struct sqlite_link *link, const char *temporary, struct store_copied *out_copied,
                     struct fly_error *out_error)
{
    sqlite3 *copy = NULL;
    int code = vacuum_into(link, temporary, out_error);

    if (code == 0)
        code = sync_path(temporary, O_RDWR, out_error);
    if (code == 0)
        code = copy_open(temporary, &copy, out_error);
    if (code == 0)
        code = copy_check(copy, temporary, out_copied, out_error);
    sqlite3_close(copy);
    return code;
}

static int write_copy(struct sqlite_link *link, const char *path, struct store_copied *out_copied,
                      struct fly_error *out_error)
{
    char temporary[COPY_NAME_MAX];
    struct stat status;
    int code, fd;

    /* The path begins with '/' or "./", so that SQLite cannot take it for a URI. */
    if (snprintf(temporary, sizeof temporary, "%s%s.%ld-partial", path[0] == '/' ? "" : "./", path,
                 (long)getpid()) >= PATH_MAX)
        return error_set(out_error, FLY_ELIMIT, "'%.100s...': a path that long is not supported", path);
    if (lstat(path, &status) == 0)
        return copy_there_already(path, out_error);
    fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return copy_failed(path, "made", errno, out_error);
    close(fd);
    code = fill_copy(link, temporary, out_copied, out_error);
    if (code == 0)
        code = name_file(temporary, path, out_error);
    if (code < 0)
        unlink(temporary);
    return code;
}

int store_back_up(const char *address, const char *path, struct store_copied *out_copied,
                  struct fly_error *out_error)
{
    const struct store_options options = {.wait_s = wait_s, .existing = true};
    struct sqlite_link *link;
    const char *store;
    int code = copy_find_file(address, "backed up", &store, out_error);

    if (code < 0)
        return code;
    code = sqlite_link_open(store, &options, &link, out_error);
    if (code < 0)
        return code;
    code = write_copy(link, path, out_copied, out_error);
    sqlite_link_close(link);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a store that may be in use with SQLite's own backup, which includes what its log holds. */
#include "store/store_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/sqlite_file.h"
#include "store/sqlite_link.h"
#include "store/sqlite_schema.h"
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

/* ---- restoring: in a transaction of SQLite, with the file held exclusively ---- */

/* Files that SQLite keeps beside its own. The second one never holds data of its own. */
static const char *const companions[] = {"-wal", "-shm", "-journal"};
enum { COMPANIONS = sizeof companions / sizeof companions[0], SHARED_MEMORY = 1 };

static bool has_companion(const char *path, size_t which)
{
    char name[COPY_NAME_MAX];
    struct stat status;

    snprintf(name, sizeof name, "%s%s", path, companions[which]);
    return stat(name, &status) == 0 && status.st_size > 0;
}

/* Opens the copy to restore, once it is known to be complete by itself. */
static int open_source(const char *path, sqlite3 **out_db, struct store_copied *out_copied,
                       struct fly_error *out_error)
{
    struct stat status;
    int code;

    if (stat(path, &status) < 0)
        return copy_failed(path, "read", errno, out_error);
    if (!S_ISREG(status.st_mode))
        return error_set(out_error, FLY_EDATA, "'%.200s' is no copy of a store; name another file", path);
    for (size_t i = 0; i < COMPANIONS; i++) {
        if (i != SHARED_MEMORY && has_companion(path, i))
            return error_set(
                out_error, FLY_EDATA,
                "'%.200s' has a log beside it ('%s'), so that it is a store and not a copy by itself; "
                "copy it with 'flyball job backup', and restore the copy",
                path, companions[i]);
    }
    code = copy_open(path, out_db, out_error);
    return code < 0 ? code : copy_check(*out_db, path, out_copied, out_error);
}

static int in_use(const char *store, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_EBUSY,
        "the store '%.200s' is in use; stop the trainings and services that have it open ('fuser FILE' "
        "names them), and try again",
        store);
}

/* Gets the file exclusively, with all data in it. Returns 1 if it is too damaged for that. */
static int take_alone(sqlite3 *db, const char *store, bool fresh, struct fly_error *out_error)
{
    char owner[32], mode[32];

    if (sqlite3_exec(db, "PRAGMA synchronous = FULL; PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) !=
            SQLITE_OK ||
        copy_ask(db, "PRAGMA application_id", owner, sizeof owner) < 0 ||
        copy_ask(db, "PRAGMA journal_mode = DELETE", mode, sizeof mode) < 0) {
        int cause = sqlite3_errcode(db);

        if (cause == SQLITE_BUSY || cause == SQLITE_LOCKED)
            return in_use(store, out_error);
        return cause == SQLITE_CORRUPT || cause == SQLITE_NOTADB
                   ? 1
                   : copy_sqlite_failed(db, store, "restored", out_error);
    }
    if (strcmp(mode, "delete") != 0)
        return in_use(store, out_error);
    if (!fresh && strtol(owner, NULL, 10) != SQLITE_APPLICATION_ID)
        return error_set(out_error, FLY_EDATA,
                         "'%.200s' is another program's database; name another path for the store", store);
    return 0;
}

/* Copies all pages in one transaction. */
static int copy_pages(sqlite3 *to, sqlite3 *from, const char *store, struct fly_error *out_error)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int stepped;

    if (backup == NULL)
        return copy_sqlite_failed(to, store, "restored", out_error);
    stepped = sqlite3_backup_step(backup, -1);
    if (sqlite3_backup_finish(backup) != SQLITE_OK || stepped != SQLITE_DONE)
        return sqlite3_errcode(to) == SQLITE_BUSY ? in_use(store, out_error)
                                                  : copy_sqlite_failed(to, store, "restored", out_error);
    return 0;
}

/* Returns 1 if the store is too damaged to be written. */
static int restore_into(const char *store, bool fresh, sqlite3 *from, struct fly_error *out_error)
{
    sqlite3 *to = NULL;
    int code;

    /* The path is absolute, and not a URI. */
    if (sqlite3_open_v2(store, &to, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        code = copy_sqlite_failed(to, store, "opened", out_error);
    else
        code = take_alone(to, store, fresh, out_error);
    if (code == 0)
        code = copy_pages(to, from, store, out_error);
    sqlite3_close(to);
    return code;
}

/* Returns whether nobody has the file open, by the lock that SQLite's connections share. */
static bool is_alone(const char *store)
{
    enum { SQLITE_LOCK_BYTES = 512, SQLITE_FIRST_LOCK = 0x40000000 };
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SQLITE_FIRST_LOCK, .l_len = SQLITE_LOCK_BYTES};
    int fd = open(store, O_RDWR | O_CLOEXEC);
    bool alone = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;

    if (fd >= 0)
        close(fd);
    return alone;
}

static int set_aside(const char *store, struct fly_error *out_error)
{
    char from[COPY_NAME_MAX], to[COPY_NAME_MAX];
    struct stat status;

    if (!is_alone(store))
        return in_use(store, out_error);
    snprintf(to, sizeof to, "%s.damaged", store);
    if (lstat(to, &status) == 0)
        return copy_there_already(to, out_error);
    /* The logs come first, so that this can be repeated wherever it was interrupted. */
    for (size_t i = 0; i < COMPANIONS; i++) {
        snprintf(from, sizeof from, "%s%s", store, companions[i]);
        snprintf(to, sizeof to, "%s.damaged%s", store, companions[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return copy_failed(from, "moved away", errno, out_error);
    }
    snprintf(to, sizeof to, "%s.damaged", store);
    return rename(store, to) == 0 ? 0 : copy_failed(store, "moved away", errno, out_error);
}

/* Removes what an earlier file of that name has left: it belongs to nothing. */
static void remove_leftovers(const char *store)
{
    char name[COPY_NAME_MAX];

    for (size_t i = 0; i < COMPANIONS; i++) {
        snprintf(name, sizeof name, "%s%s", store, companions[i]);
        unlink(name);
    }
}

static int restore_fresh(const char *store, sqlite3 *from, struct fly_error *out_error)
{
    int fd, code;

    remove_leftovers(store);
    fd = open(store, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return copy_failed(store, "made", errno, out_error);
    close(fd);
    code = restore_into(store, true, from, out_error);
    if (code != 0)
        unlink(store);
    return code <= 0 ? code : error_set(out_error, FLY_EINTERNAL, "'%.200s' cannot be made", store);
}

static int restore_over(const char *store, bool replace, sqlite3 *from, struct fly_error *out_error)
{
    int code;

    if (!replace)
        return error_set(
            out_error, FLY_ECONFLICT,
            "there is a store '%.200s' already; back it up, then replace it with --replace, or name "
            "another",
            store);
    code = restore_into(store, false, from, out_error);
    if (code <= 0)
        return code;
    code = set_aside(store, out_error);
    return code < 0 ? code : restore_fresh(store, from, out_error);
}

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;

    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static int restore_to(const char *path, const char *store, bool replace, sqlite3 *from,
                      struct fly_error *out_error)
{
    struct stat status;

    if (same_file(path, store))
        return error_set(out_error, FLY_EUSAGE, "'%.200s' is the store itself; name a copy of it", path);
    if (stat(store, &status) < 0)
        return restore_fresh(store, from, out_error);
    return status.st_size == 0 ? restore_into(store, true, from, out_error)
                               : restore_over(store, replace, from, out_error);
}

int store_restore(const char *path, const char *address, bool replace, struct store_copied *out_copied,
                  struct fly_error *out_error)
{
    char store[PATH_MAX];
    const char *target = NULL;
    sqlite3 *copy = NULL;
    int code = copy_find_file(address, "restored", &target, out_error);

    if (code == 0)
        code = open_source(path, &copy, out_copied, out_error);
    if (code == 0)
        code = sqlite_file_place(target, NULL, store, out_error);
    if (code == 0)
        code = restore_to(path, store, replace, copy, out_error);
    sqlite3_close(copy);
    return code;
}

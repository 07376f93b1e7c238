/* SPDX-License-Identifier: Apache-2.0 */
/* What taking a copy and restoring one share. */
#include "store/store_copy_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/sqlite_schema.h"
#include "store/store_address.h"

/* Gives the path of a store in a file; a server has its own tools. */
int copy_find_file(const char *address, const char *doing, const char **out_path, struct fly_error *out_error)
{
    struct store_address parsed;
    int code = store_address_parse(address, &parsed, out_error);

    if (code < 0)
        return code;
    if (parsed.place == STORE_ON_SERVER)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "a store on a server is not %s by this command; use the server's tools: \"pg_dump -Fc -t "
            "'flyball_*' DATABASE >FILE\" and \"pg_restore --clean --if-exists --single-transaction -d "
            "DATABASE FILE\"",
            doing);
    *out_path = parsed.text;
    return 0;
}

int copy_failed(const char *path, const char *doing, int cause, struct fly_error *out_error)
{
    int code = cause == ENOENT || cause == ENOTDIR                   ? FLY_ENOTFOUND
               : cause == EACCES || cause == EPERM || cause == EROFS ? FLY_EPERM
                                                                     : FLY_EWRITE;

    return error_set(out_error, code, "'%.200s' cannot be %s: %s; name another file", path, doing,
                     strerror(cause));
}

int copy_sqlite_failed(sqlite3 *db, const char *path, const char *doing, struct fly_error *out_error)
{
    int cause = db == NULL ? SQLITE_NOMEM : sqlite3_errcode(db);
    int code = cause == SQLITE_FULL || cause == SQLITE_IOERR                                  ? FLY_EWRITE
               : cause == SQLITE_CORRUPT                                                      ? FLY_EREAD
               : cause == SQLITE_NOTADB                                                       ? FLY_EDATA
               : cause == SQLITE_BUSY || cause == SQLITE_LOCKED                               ? FLY_EBUSY
               : cause == SQLITE_CANTOPEN || cause == SQLITE_PERM || cause == SQLITE_READONLY ? FLY_EPERM
               : cause == SQLITE_NOMEM                                                        ? FLY_ENOMEM
                                                                                              : FLY_EWRITE;

    return error_set(out_error, code, "'%.200s' cannot be %s: %s", path, doing,
                     db == NULL ? "memory is exhausted" : sqlite3_errmsg(db));
}

/* Gives one value of an SQL query; "" if there is none. */
int copy_ask(sqlite3 *db, const char *sql, char *text, size_t size)
{
    sqlite3_stmt *statement = NULL;
    int stepped = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    text[0] = '\0';
    if (stepped == SQLITE_OK)
        stepped = sqlite3_step(statement);
    if (stepped == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        snprintf(text, size, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return stepped == SQLITE_ROW || stepped == SQLITE_DONE ? 0 : -1;
}

/* ---- a copy, to be read ---- */

/* Makes a file name with options in the form that SQLite reads. */
static char *make_uri(const char *path, const char *options)
{
    static const char head[] = "file:", digits[] = "0123456789ABCDEF";
    char *uri = malloc(sizeof head + 3 * strlen(path) + strlen(options)), *at = uri;

    if (uri == NULL)
        return NULL;
    at += sprintf(at, "%s", head);
    for (; *path != '\0'; path++) {
        unsigned char byte = (unsigned char)*path;

        if (isalnum(byte) || strchr("/._-", byte) != NULL) {
            *at++ = (char)byte;
        } else {
            *at++ = '%';
            *at++ = digits[byte >> 4];
            *at++ = digits[byte & 15];
        }
    }
    memcpy(at, options, strlen(options) + 1);
    return uri;
}

/* Reads and makes no other file beside it. */
int copy_open(const char *path, sqlite3 **out_db, struct fly_error *out_error)
{
    char *uri = make_uri(path, "?immutable=1");
    int opened = uri == NULL ? SQLITE_NOMEM
                             : sqlite3_open_v2(uri, out_db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);

    free(uri);
    return opened == SQLITE_OK ? 0 : copy_sqlite_failed(*out_db, path, "read", out_error);
}

static int check_owner(sqlite3 *db, const char *path, struct fly_error *out_error)
{
    char owner[32], version[32];

    if (copy_ask(db, "PRAGMA application_id", owner, sizeof owner) < 0 ||
        copy_ask(db, "PRAGMA user_version", version, sizeof version) < 0)
        return copy_sqlite_failed(db, path, "read", out_error);
    if (strtol(owner, NULL, 10) != SQLITE_APPLICATION_ID || strtol(version, NULL, 10) < 1)
        return error_set(out_error, FLY_EDATA, "'%.200s' is no copy of a store; name another file", path);
    if ((size_t)strtol(version, NULL, 10) > sqlite_migration_count)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "'%.200s' was written by a newer Flyball (schema %s; this one knows %zu); update this one", path,
            version, sqlite_migration_count);
    return 0;
}

int copy_check(sqlite3 *db, const char *path, struct store_copied *out_copied, struct fly_error *out_error)
{
    char words[200], jobs[32], events[32];
    int code = check_owner(db, path, out_error);

    if (code < 0)
        return code;
    if (copy_ask(db, "PRAGMA integrity_check(1)", words, sizeof words) < 0 || strcmp(words, "ok") != 0)
        return error_set(out_error, FLY_EREAD, "'%.200s' is damaged: %s; take another copy", path,
                         words[0] != '\0' ? words : sqlite3_errmsg(db));
    if (copy_ask(db, "SELECT count(*) FROM job", jobs, sizeof jobs) < 0 ||
        copy_ask(db, "SELECT count(*) FROM event", events, sizeof events) < 0)
        return copy_sqlite_failed(db, path, "read", out_error);
    *out_copied = (struct store_copied){strtoull(jobs, NULL, 10), strtoull(events, NULL, 10)};
    return 0;
}

int copy_there_already(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ECONFLICT, "there is a file '%.200s' already; name another, or remove it",
                     path);
}

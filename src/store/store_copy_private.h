/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_COPY_PRIVATE_H
#define FLYBALL_STORE_STORE_COPY_PRIVATE_H

#include <limits.h>
#include <stddef.h>

#include <sqlite3.h>

#include "store/store_copy.h"

/* What store_copy.c and store_backup.c share; see store_copy.h. */
enum { COPY_NAME_MAX = PATH_MAX + 32 };

/*
 * Gives the path of a store in a file (NULL: the user's own). A server has its own tools:
 * FLY_EUNSUPPORTED.
 */
int copy_find_file(const char *address, const char *doing, const char **out_path,
                   struct fly_error *out_error);

/* Return errors with their texts: of the system, of SQLite, and for a name that is taken. */
int copy_failed(const char *path, const char *doing, int cause, struct fly_error *out_error);
int copy_sqlite_failed(sqlite3 *db, const char *path, const char *doing, struct fly_error *out_error);
int copy_there_already(const char *path, struct fly_error *out_error);

/* Gives one value of an SQL query, "" if there is none; returns 0, or -1 with SQLite's error. */
int copy_ask(sqlite3 *db, const char *sql, char *text, size_t size);

/* Opens a copy for reading; reads and makes no other file beside it. The caller closes it. */
int copy_open(const char *path, sqlite3 **out_db, struct fly_error *out_error);

/* Checks that it is a complete store of a known version. */
int copy_check(sqlite3 *db, const char *path, struct store_copied *out_copied, struct fly_error *out_error);

#endif

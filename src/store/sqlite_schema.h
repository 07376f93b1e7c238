/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_SQLITE_SCHEMA_H
#define FLYBALL_STORE_SQLITE_SCHEMA_H

#include <stddef.h>

/*
 * The tables of a store in SQLite, version by version. A file's header says that it is a store of
 * Flyball (application_id) and which version it has (user_version). A released version never
 * changes; a new version is a new row at the end.
 */
struct sqlite_migration {
    int version;     /* the version it leads to: its index + 1 */
    const char *sql; /* starts from the version before; statements separated by ';' */
};

extern const struct sqlite_migration sqlite_migrations[];
extern const size_t sqlite_migration_count;

enum { SQLITE_APPLICATION_ID = 0x464C5942 }; /* "FLYB" */

#endif

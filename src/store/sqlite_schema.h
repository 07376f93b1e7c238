/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_SQLITE_SCHEMA_H
#define FLYBALL_STORE_SQLITE_SCHEMA_H

#include <stddef.h>

/*
 * The tables of a store in SQLite, version by version. A file says in its header
 * whose it is (application_id) and which version it has (user_version). A version
 * once released never changes; a new one is a row at the end.
 */
struct sqlite_migration {
    int version;     /* that it leads to: its index + 1 */
    const char *sql; /* from the version before; statements separated by ';' */
};

extern const struct sqlite_migration sqlite_migrations[];
extern const size_t sqlite_migration_count;

enum { SQLITE_APPLICATION_ID = 0x464C5942 }; /* "FLYB" */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BENCH_BARE_INSERTS_H
#define FLYBALL_BENCH_BARE_INSERTS_H

#include <sqlite3.h>

#include "store/postgres_link.h"

/*
 * The reference for what a log costs: a row of a report's size, brought to the disk alone, in a plain table.
 * The table is in the same server's database, or in a file next to the store's, and is written by the same
 * library with the same settings. Any failure ends the program.
 */
struct bare {
    sqlite3 *db;
    sqlite3_stmt *insert;
    struct postgres_link *link; /* NULL: SQLite */
};

/* A report's body. */
extern const char bare_body[];

/* `address` as of store_open: a path, or postgresql://... */
void bare_open(struct bare *bare, const char *address);
void bare_insert(struct bare *bare);
void bare_close(struct bare *bare);

#endif

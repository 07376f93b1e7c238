/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_SCHEMA_H
#define FLYBALL_STORE_POSTGRES_SCHEMA_H

#include <stddef.h>

#include <flyball/error.h>

#include "store/postgres_link.h"

/*
 * The tables of a store on a server, version by version, in the first schema of the search path.
 * A released version never changes; a new version is a new row at the end.
 */
struct postgres_migration {
    int version;     /* the version it leads to: its index + 1 */
    const char *sql; /* starts from the version before; statements separated by ';' */
};

extern const struct postgres_migration postgres_migrations[];
extern const size_t postgres_migration_count;

/*
 * Brings the tables up to date in one transaction; if several programs start at once, one of them
 * does it. FLY_EUNSUPPORTED for a newer version, and errors as postgres_link_ask. With `existing`
 * it makes no tables: FLY_ENOTFOUND.
 */
int postgres_schema_update(struct postgres_link *link, bool existing, struct fly_error *out_error);

#endif

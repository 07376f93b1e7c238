/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_schema.h"

/*
 * Events are found by number, by trial and by key, each through an index, so that a long log
 * costs no more than a short one. Ids of jobs are never reused.
 */
static const char version_1[] = "CREATE TABLE job ("
                                " id INTEGER PRIMARY KEY AUTOINCREMENT,"
                                " name TEXT NOT NULL UNIQUE,"
                                " head INTEGER NOT NULL CHECK (head >= 0),"
                                " made_us INTEGER NOT NULL,"
                                " changed_us INTEGER NOT NULL"
                                ") STRICT;"
                                "CREATE TABLE event ("
                                " job INTEGER NOT NULL REFERENCES job (id),"
                                " number INTEGER NOT NULL CHECK (number > 0),"
                                " time_us INTEGER NOT NULL,"
                                " kind TEXT NOT NULL CHECK (kind <> ''),"
                                " trial INTEGER NOT NULL CHECK (trial >= 0),"
                                " key TEXT NOT NULL,"
                                " body TEXT NOT NULL,"
                                " UNIQUE (job, number)"
                                ") STRICT;"
                                "CREATE INDEX event_of_trial ON event (job, trial, number) WHERE trial > 0;"
                                "CREATE UNIQUE INDEX event_with_key ON event (job, key) WHERE key <> '';"
                                "CREATE TABLE snapshot ("
                                " job INTEGER NOT NULL REFERENCES job (id),"
                                " version TEXT NOT NULL,"
                                " number INTEGER NOT NULL CHECK (number > 0),"
                                " bytes BLOB NOT NULL,"
                                " PRIMARY KEY (job, version)"
                                ") STRICT;";

const struct sqlite_migration sqlite_migrations[] = {
    {1, version_1},
};
const size_t sqlite_migration_count = sizeof sqlite_migrations / sizeof sqlite_migrations[0];

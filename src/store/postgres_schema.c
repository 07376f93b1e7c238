/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_schema.h"

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* As in SQLite, except for the collation: names are ordered by their bytes. */
static const char version_1[] =
    "CREATE TABLE flyball_store (version integer NOT NULL);"
    "INSERT INTO flyball_store VALUES (0);"
    "CREATE TABLE flyball_job ("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " name text COLLATE \"C\" NOT NULL UNIQUE,"
    " head bigint NOT NULL CHECK (head >= 0),"
    " made_us bigint NOT NULL,"
    " changed_us bigint NOT NULL"
    ") WITH (fillfactor = 50);"
    "CREATE TABLE flyball_event ("
    " job bigint NOT NULL REFERENCES flyball_job,"
    " number bigint NOT NULL CHECK (number > 0),"
    " time_us bigint NOT NULL,"
    " kind text NOT NULL CHECK (kind <> ''),"
    " trial bigint NOT NULL CHECK (trial >= 0),"
    " key text COLLATE \"C\" NOT NULL,"
    " body text NOT NULL,"
    " PRIMARY KEY (job, number)"
    ");"
    "CREATE INDEX flyball_event_of_trial ON flyball_event (job, trial, number) WHERE trial > 0;"
    "CREATE UNIQUE INDEX flyball_event_with_key ON flyball_event (job, key) WHERE key <> '';"
    "CREATE TABLE flyball_snapshot ("
    " job bigint NOT NULL REFERENCES flyball_job,"
    " version text NOT NULL,"
    " number bigint NOT NULL CHECK (number > 0),"
    " bytes bytea NOT NULL,"
    " PRIMARY KEY (job, version)"
    ");";

const struct postgres_migration postgres_migrations[] = {
    {1, version_1},
};
const size_t postgres_migration_count = sizeof postgres_migrations / sizeof postgres_migrations[0];

/* Gives 0 if there are no tables yet. */
static int read_version(struct postgres_link *link, int64_t *out_version, struct fly_error *out_error)
{
    /* Looks into the catalogue, because names are cached and others may be making tables. */
    static const struct postgres_question is_there = {
        .sql = "SELECT count(*) FROM pg_class WHERE relname = 'flyball_store' AND pg_table_is_visible(oid)"};
    static const struct postgres_question which = {.sql = "SELECT max(version) FROM flyball_store"};
    struct pg_result *result;
    int code = postgres_link_ask(link, &is_there, "read", &result, out_error);
    bool there;

    if (code < 0)
        return code;
    there = postgres_number(link, result, 0, 0) > 0;
    link->call.clear(result);
    *out_version = 0;
    if (!there)
        return 0;
    code = postgres_link_ask(link, &which, "read", &result, out_error);
    if (code < 0)
        return code;
    *out_version = postgres_number(link, result, 0, 0);
    link->call.clear(result);
    if (*out_version <= (int64_t)postgres_migration_count)
        return 0;
    return error_set(
        out_error, FLY_EUNSUPPORTED,
        "the store '%s' was written by a newer Flyball (schema %lld; this one knows %zu); update this "
        "one",
        link->shown, (long long)*out_version, postgres_migration_count);
}

static int say(struct postgres_link *link, const char *sql, struct fly_error *out_error)
{
    const struct postgres_question question = {.sql = sql};

    return postgres_link_ask(link, &question, "brought up to date", NULL, out_error);
}

static int migrate(struct postgres_link *link, struct fly_error *out_error)
{
    char header[80];
    int64_t version = 0;
    int code = say(link, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(1179408706)",
                   out_error);

    if (code == 0)
        code = read_version(link, &version, out_error);
    for (size_t i = (size_t)version; code == 0 && i < postgres_migration_count; i++)
        code = say(link, postgres_migrations[i].sql, out_error);
    snprintf(header, sizeof header, "UPDATE flyball_store SET version = %zu", postgres_migration_count);
    if (code == 0)
        code = say(link, header, out_error);
    if (code == 0)
        code = say(link, "COMMIT", out_error);
    if (code < 0)
        postgres_link_undo(link);
    return code;
}

int postgres_schema_update(struct postgres_link *link, bool existing, struct fly_error *out_error)
{
    int64_t version;
    int code = read_version(link, &version, out_error);

    if (code == 0 && version == 0 && existing)
        return error_set(
            out_error, FLY_ENOTFOUND,
            "there is no store in the database '%s'; look at its name, or name another; a training of a "
            "job makes one",
            link->shown);
    return code < 0 || version == (int64_t)postgres_migration_count ? code : migrate(link, out_error);
}

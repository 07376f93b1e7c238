/* SPDX-License-Identifier: Apache-2.0 */
/* Logs on a server, for many machines: changes. The lock of a job is the lock of its row. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/error.h>

#include "base/error.h"
#include "store/postgres_group.h"
#include "store/postgres_link.h"
#include "store/store_backend.h"
#include "store/store_text.h"

/*
 * The tables of a store on a server, version by version, in the first schema of the search path.
 * A released version never changes; a new version is a new row at the end.
 */
struct postgres_migration {
    int version;     /* the version it leads to: its index + 1 */
    const char *sql; /* starts from the version before; statements separated by ';' */
};

/*
 * Reads a store on a server. Each function returns 0 or a negative code. Texts passed to a
 * visitor are valid only during that call. `state` is the struct postgres_link.
 */

/* The function to ask with: postgres_link_ask within a change, postgres_link_ask_anew outside of one. */
typedef int postgres_ask(struct postgres_link *link, const struct postgres_question *question,
                         const char *doing, struct pg_result **out_result, struct fly_error *out_error);

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

static const struct postgres_migration postgres_migrations[] = {
    {1, version_1},
};
static const size_t postgres_migration_count = sizeof postgres_migrations / sizeof postgres_migrations[0];

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

/*
 * Brings the tables up to date in one transaction; if several programs start at once, one of them
 * does it. FLY_EUNSUPPORTED for a newer version, and errors as postgres_link_ask. With `existing`
 * it makes no tables: FLY_ENOTFOUND.
 */
static int postgres_schema_update(struct postgres_link *link, bool existing, struct fly_error *out_error)
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

/* ---- reading: jobs, pages of their logs, snapshots ---- */

enum {
    EVENTS_AT_ONCE = 64, /* rows per page: their bodies may be large */
    JOBS_AT_ONCE = 500,
};

/* Columns of events, and of jobs. */
enum { EVENT_NUMBER, EVENT_TIME, EVENT_KIND, EVENT_TRIAL, EVENT_KEY, EVENT_BODY };
enum { JOB_NAME, JOB_ID, JOB_HEAD, JOB_MADE, JOB_CHANGED };

#define JOB_COLUMNS "name, id, head, made_us, changed_us"
#define EVENT_COLUMNS "number, time_us, kind, trial, key, body"

static const char sql_find_job[] = "SELECT " JOB_COLUMNS " FROM flyball_job WHERE name = $1";
static const char sql_list_jobs[] =
    "SELECT " JOB_COLUMNS " FROM flyball_job WHERE name > $1 ORDER BY name LIMIT $2::bigint";
static const char sql_read[] = "SELECT " EVENT_COLUMNS " FROM flyball_event WHERE job = $1::bigint "
                               "AND number > $2::bigint ORDER BY number LIMIT $3::bigint";
static const char sql_read_trial[] =
    "SELECT " EVENT_COLUMNS " FROM flyball_event WHERE job = $1::bigint AND number > $2::bigint "
    "AND trial = $4::bigint AND trial > 0 ORDER BY number LIMIT $3::bigint";
static const char sql_read_key[] =
    "SELECT " EVENT_COLUMNS " FROM flyball_event WHERE job = $1::bigint AND number > $2::bigint "
    "AND ($4::bigint = 0 OR trial = $4::bigint) AND key = $5 AND key <> '' LIMIT $3::bigint";
static const char sql_get_snapshot[] =
    "SELECT number::text, bytes FROM flyball_snapshot WHERE job = $1::bigint AND version = $2";

static int visit_jobs(struct postgres_link *link, const struct pg_result *result, store_visit_job *visit,
                      void *visitor, struct fly_error *out_error)
{
    int rows = link->call.row_count(result), visited = 0;

    for (int row = 0; row < rows && visited == 0; row++) {
        const struct store_job job = {
            .name = link->call.value(result, row, JOB_NAME),
            .id = (uint64_t)postgres_number(link, result, row, JOB_ID),
            .events = (uint64_t)postgres_number(link, result, row, JOB_HEAD),
            .made_us = postgres_number(link, result, row, JOB_MADE),
            .changed_us = postgres_number(link, result, row, JOB_CHANGED),
        };

        visited = visit(visitor, &job, out_error);
    }
    return visited;
}

/* Like the functions of struct store_backend outside of a change: a broken connection is made again. */
static int postgres_find_job(void *state, const char *job, store_visit_job *visit, void *visitor,
                             struct fly_error *out_error)
{
    struct postgres_link *link = state;
    struct postgres_question question = {.sql = sql_find_job};
    struct pg_result *result;
    int code;

    postgres_bind_text(&question, job);
    code = postgres_link_ask_anew(link, &question, "read", &result, out_error);
    if (code < 0)
        return code;
    code = link->call.row_count(result) == 0 ? store_no_job(job, out_error)
                                             : visit_jobs(link, result, visit, visitor, out_error);
    link->call.clear(result);
    return code < 0 ? code : 0;
}

static int postgres_list_jobs(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error)
{
    struct postgres_link *link = state;
    char last[STORE_JOB_MAX + 1] = "";
    int rows, visited;

    do {
        struct postgres_question question = {.sql = sql_list_jobs};
        struct pg_result *result;
        int code;

        postgres_bind_text(&question, last);
        postgres_bind_number(&question, JOBS_AT_ONCE);
        code = postgres_link_ask_anew(link, &question, "read", &result, out_error);
        if (code < 0)
            return code;
        rows = link->call.row_count(result);
        visited = visit_jobs(link, result, visit, visitor, out_error);
        if (rows > 0)
            strncpy(last, link->call.value(result, rows - 1, JOB_NAME), STORE_JOB_MAX);
        link->call.clear(result);
    } while (visited == 0 && rows == JOBS_AT_ONCE);
    return visited < 0 ? visited : 0;
}

static int keep_id(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)out_error;
    *(uint64_t *)state = job->id;
    return 0;
}

static int visit_events(struct postgres_link *link, const struct pg_result *result, store_visit *visit,
                        void *visitor, uint64_t *out_last, struct fly_error *out_error)
{
    int rows = link->call.row_count(result), visited = 0;

    for (int row = 0; row < rows && visited == 0; row++) {
        const struct store_event event = {
            .number = (uint64_t)postgres_number(link, result, row, EVENT_NUMBER),
            .time_us = postgres_number(link, result, row, EVENT_TIME),
            .kind = link->call.value(result, row, EVENT_KIND),
            .trial = (uint64_t)postgres_number(link, result, row, EVENT_TRIAL),
            .key = link->call.value(result, row, EVENT_KEY),
            .body = link->call.value(result, row, EVENT_BODY),
        };

        *out_last = event.number;
        visited = visit(visitor, &event, out_error);
    }
    return visited;
}

static void ask_for_page(struct postgres_question *question, uint64_t job, const struct store_query *query,
                         uint64_t after, uint64_t rows)
{
    question->sql = query->key != NULL ? sql_read_key : query->trial != 0 ? sql_read_trial : sql_read;
    postgres_bind_number(question, (int64_t)job);
    postgres_bind_number(question, after > INT64_MAX ? INT64_MAX : (int64_t)after);
    postgres_bind_number(question, (int64_t)rows);
    if (question->sql != sql_read)
        postgres_bind_number(question, (int64_t)query->trial);
    if (question->sql == sql_read_key)
        postgres_bind_text(question, query->key);
}

/*
 * Reads the log of the job with that id page by page, so that a long log needs little memory.
 * Logs only grow, so the pages fit together.
 */
static int postgres_read_events(struct postgres_link *link, postgres_ask *ask_page, uint64_t job,
                                const struct store_query *query, store_visit *visit, void *visitor,
                                struct fly_error *out_error)
{
    uint64_t after = query->after, left = query->limit == 0 ? UINT64_MAX : query->limit, wanted, rows;
    int visited;

    do {
        struct postgres_question question = {0};
        struct pg_result *result;
        int code;

        wanted = left < EVENTS_AT_ONCE ? left : EVENTS_AT_ONCE;
        ask_for_page(&question, job, query, after, wanted);
        code = ask_page(link, &question, "read", &result, out_error);
        if (code < 0)
            return code;
        rows = (uint64_t)link->call.row_count(result);
        visited = visit_events(link, result, visit, visitor, &after, out_error);
        link->call.clear(result);
        left -= rows;
    } while (visited == 0 && rows == wanted && left > 0 && query->key == NULL);
    return visited < 0 ? visited : 0;
}

static int postgres_read_by_name(void *state, const char *job, const struct store_query *query,
                                 store_visit *visit, void *visitor, struct fly_error *out_error)
{
    uint64_t id = 0;
    int code = postgres_find_job(state, job, keep_id, &id, out_error);

    return code < 0
               ? code
               : postgres_read_events(state, postgres_link_ask_anew, id, query, visit, visitor, out_error);
}

/* Appends the job's snapshot to `out_bytes`; the number is 0 if there is none. */
static int postgres_get_snapshot(struct postgres_link *link, postgres_ask *ask_it, uint64_t job,
                                 const char *version, uint64_t *out_number, struct buffer *out_bytes,
                                 struct fly_error *out_error)
{
    struct postgres_question question = {.sql = sql_get_snapshot, .as_bytes = true};
    struct pg_result *result;
    uint64_t number = 0;
    int code;

    postgres_bind_number(&question, (int64_t)job);
    postgres_bind_text(&question, version);
    code = ask_it(link, &question, "read", &result, out_error);
    if (code < 0)
        return code;
    if (link->call.row_count(result) > 0) {
        number = (uint64_t)postgres_number(link, result, 0, 0);
        buffer_append(out_bytes, link->call.value(result, 0, 1),
                      (size_t)link->call.value_bytes(result, 0, 1));
    }
    link->call.clear(result);
    if (out_bytes->error < 0)
        return error_set(out_error, out_bytes->error,
                         "a snapshot in the store '%s' is too large to be read; allow more", link->shown);
    *out_number = number;
    return 0;
}

static int postgres_snapshot_by_name(void *state, const char *job, const char *version, uint64_t *out_number,
                                     struct buffer *out_bytes, struct fly_error *out_error)
{
    uint64_t id = 0;
    int code = postgres_find_job(state, job, keep_id, &id, out_error);

    return code < 0 ? code
                    : postgres_get_snapshot(state, postgres_link_ask_anew, id, version, out_number, out_bytes,
                                            out_error);
}

enum { LOCK_TRIES = 5 }; /* for a job that others make and delete at the same time */

static const char sql_begin[] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/* Reads the clock once the lock is held, not while waiting for it. */
static const char sql_lock[] =
    "WITH locked AS MATERIALIZED (SELECT id, head FROM flyball_job WHERE name = $1 FOR UPDATE) "
    "SELECT id, head, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM locked";
static const char sql_make_job[] = "INSERT INTO flyball_job (name, head, made_us, changed_us) "
                                   "VALUES ($1, 0, 0, 0) ON CONFLICT (name) DO NOTHING";
static const char sql_append[] = "INSERT INTO flyball_event (job, number, time_us, kind, trial, key, body) "
                                 "VALUES ($1::bigint, $2::bigint, $3::bigint, $4, $5::bigint, $6, $7) "
                                 "ON CONFLICT (job, key) WHERE key <> '' DO NOTHING";
static const char sql_commit[] = "COMMIT";
/*
 * The job's row is updated once per change, together with the commit: each update leaves a dead
 * row behind, which the next update has to pass until the change has ended.
 */
static const char sql_move_and_commit[] =
    "UPDATE flyball_job SET head = %" PRIu64 ", changed_us = %" PRId64 ", "
    "made_us = CASE head WHEN 0 THEN %" PRId64 " ELSE made_us END WHERE id = %" PRIu64 "; COMMIT";
static const char sql_put_snapshot[] =
    "INSERT INTO flyball_snapshot (job, version, number, bytes) VALUES ($1::bigint, $2, $3::bigint, "
    "$4::bytea) "
    "ON CONFLICT (job, version) DO UPDATE SET number = excluded.number, bytes = excluded.bytes";

static int open_server(const struct store_address *address, const struct store_options *options,
                       void **out_state, char **out_shown, struct fly_error *out_error)
{
    struct postgres_link *link;
    char *shown;
    int code = postgres_link_open(address->text, options->wait_s, &link, out_error);

    if (code < 0)
        return code;
    code = postgres_schema_update(link, options->existing, out_error);
    shown = strdup(link->shown);
    if (code == 0 && shown == NULL)
        code = error_no_memory(out_error);
    if (code < 0) {
        free(shown);
        postgres_link_close(link);
        return code;
    }
    *out_state = link;
    *out_shown = shown;
    return 0;
}

static void close_server(void *state)
{
    struct postgres_link *link = state;

    postgres_group_abandon(link->group);
    postgres_link_close(link);
}

static void abandon_server(void *state)
{
    postgres_group_abandon(((struct postgres_link *)state)->group);
    postgres_link_abandon(state);
}

/* Asks within a transaction: a failure aborts the transaction, and its group. */
static int ask_within(struct postgres_link *link, const struct postgres_question *question, const char *doing,
                      struct pg_result **out_result, struct fly_error *out_error)
{
    int code = postgres_link_ask(link, question, doing, out_result, out_error);

    if (code < 0 && link->group != NULL)
        postgres_group_break(link->group);
    return code;
}

/* Counts what a visitor gets, and remembers how it ended. */
struct counted_visit {
    store_visit *visit;
    void *visitor;
    uint64_t left;
    int visited;
};

static int visit_counted(void *state, const struct store_event *event, struct fly_error *out_error)
{
    struct counted_visit *counted = state;

    counted->left--;
    counted->visited = counted->visit(counted->visitor, event, out_error);
    return counted->visited;
}

/* Reads first what the server has, if it can have any of it, then what the group keeps. */
static int read_grouped(struct postgres_link *link, const struct store_change *change,
                        const struct store_query *query, store_visit *visit, void *visitor,
                        struct fly_error *out_error)
{
    struct counted_visit counted = {visit, visitor, query->limit == 0 ? UINT64_MAX : query->limit, 0};
    int code = 0;

    if (query->after < postgres_group_written(link->group, change))
        code =
            postgres_read_events(link, ask_within, change->job_id, query, visit_counted, &counted, out_error);
    if (code < 0 || counted.visited != 0)
        return code;
    code = postgres_group_visit(link->group, change, query, counted.left, visit, visitor, out_error);
    return code < 0 ? code : 0;
}

static int change_read(void *state, struct store_change *change, const struct store_query *query,
                       store_visit *visit, void *visitor, struct fly_error *out_error)
{
    struct postgres_link *link = state;

    return link->group != NULL ? read_grouped(link, change, query, visit, visitor, out_error)
                               : postgres_read_events(link, postgres_link_ask, change->job_id, query, visit,
                                                      visitor, out_error);
}

static int change_get_snapshot(void *state, struct store_change *change, const char *version,
                               uint64_t *out_number, struct buffer *out_bytes, struct fly_error *out_error)
{
    return postgres_get_snapshot(state, ask_within, change->job_id, version, out_number, out_bytes,
                                 out_error);
}

/* Locks the job's row and fills the change; tells whether there is such a row. */
static int lock_row(struct postgres_link *link, struct store_change *change, bool *out_found,
                    struct fly_error *out_error)
{
    struct postgres_question question = {.sql = sql_lock};
    struct pg_result *result;
    int code;

    postgres_bind_text(&question, change->job);
    code = postgres_link_ask(link, &question, "locked", &result, out_error);
    if (code < 0)
        return code;
    *out_found = link->call.row_count(result) > 0;
    if (*out_found) {
        change->job_id = (uint64_t)postgres_number(link, result, 0, 0);
        change->head = (uint64_t)postgres_number(link, result, 0, 1);
        change->now_us = postgres_number(link, result, 0, 2);
    }
    link->call.clear(result);
    return 0;
}

static int lock_job(struct postgres_link *link, enum store_job_wish wish, struct store_change *change,
                    struct fly_error *out_error)
{
    struct postgres_question make = {.sql = sql_make_job};
    bool found = false;
    int code = lock_row(link, change, &found, out_error);

    postgres_bind_text(&make, change->job);
    for (int i = 0; i < LOCK_TRIES && code == 0 && !found && wish == STORE_MAKE_JOB; i++) {
        code = postgres_link_ask(link, &make, "written", NULL, out_error);
        if (code == 0)
            code = lock_row(link, change, &found, out_error);
    }
    if (code == 0 && !found)
        code = store_no_job(change->job, out_error);
    return code;
}

static int begin(void *state, enum store_job_wish wish, struct store_change *change,
                 struct fly_error *out_error)
{
    static const struct postgres_question start = {.sql = sql_begin};
    struct postgres_link *link = state;
    int code;

    if (link->group != NULL)
        return postgres_group_begin(link, link->group, change, out_error);
    /* Nothing is written yet, so if the connection to the server was lost, it is asked once more. */
    for (int i = 0; i < 2; i++) {
        code = postgres_link_ask_anew(link, &start, "locked", NULL, out_error);
        if (code < 0)
            return code;
        code = lock_job(link, wish, change, out_error);
        if (code == 0)
            return 0;
        postgres_link_undo(link);
        if (code != FLY_EUNREACHABLE)
            break;
    }
    return code;
}

static int append(void *state, struct store_change *change, const struct store_event *event,
                  struct fly_error *out_error)
{
    struct postgres_link *link = state;
    struct postgres_question question = {.sql = sql_append};
    struct pg_result *result;
    bool added;
    int code;

    if (link->group != NULL)
        return postgres_group_append(link->group, change, event, out_error);
    postgres_bind_number(&question, (int64_t)change->job_id);
    postgres_bind_number(&question, (int64_t)event->number);
    postgres_bind_number(&question, event->time_us);
    postgres_bind_text(&question, event->kind);
    postgres_bind_number(&question, (int64_t)event->trial);
    postgres_bind_text(&question, event->key);
    postgres_bind_text(&question, event->body);
    code = postgres_link_ask(link, &question, "written", &result, out_error);
    if (code < 0)
        return code;
    added = strcmp(link->call.rows_changed(result), "1") == 0;
    link->call.clear(result);
    return added ? 0 : STORE_KEY_TAKEN;
}

static int put_snapshot(void *state, struct store_change *change, const char *version, uint64_t number,
                        const void *bytes, size_t byte_count, struct fly_error *out_error)
{
    struct postgres_question question = {.sql = sql_put_snapshot};

    postgres_bind_number(&question, (int64_t)change->job_id);
    postgres_bind_text(&question, version);
    postgres_bind_number(&question, (int64_t)number);
    postgres_bind_bytes(&question, bytes, byte_count);
    return ask_within(state, &question, "written", NULL, out_error);
}

static int delete_job(void *state, struct store_change *change, struct fly_error *out_error)
{
    static const char *const steps[] = {"DELETE FROM flyball_snapshot WHERE job = $1::bigint",
                                        "DELETE FROM flyball_event WHERE job = $1::bigint",
                                        "DELETE FROM flyball_job WHERE id = $1::bigint"};
    int code = 0;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && code == 0; i++) {
        struct postgres_question question = {.sql = steps[i]};

        postgres_bind_number(&question, (int64_t)change->job_id);
        code = postgres_link_ask(state, &question, "written", NULL, out_error);
    }
    return code;
}

static int commit(void *state, const struct store_change *change, struct fly_error *out_error)
{
    char words[sizeof sql_move_and_commit + 4 * POSTGRES_NUMBER_MAX];
    struct postgres_question question = {.sql = sql_commit};
    struct postgres_link *link = state;

    if (link->group != NULL) {
        postgres_group_commit(link->group, change);
        return 0;
    }
    if (change->appended > 0) {
        snprintf(words, sizeof words, sql_move_and_commit, change->head, change->last_us, change->first_us,
                 change->job_id);
        question.sql = words;
    }
    return postgres_link_commit(link, &question, out_error);
}

static void rollback(void *state)
{
    struct postgres_link *link = state;

    if (link->group != NULL)
        postgres_group_rollback(link->group);
    else
        postgres_link_undo(link);
}

static int group_begin(void *state, const char *const *jobs, size_t count, struct fly_error *out_error)
{
    struct postgres_link *link = state;

    return postgres_group_open(link, jobs, count, &link->group, out_error);
}

static int group_end(void *state, struct fly_error *out_error)
{
    struct postgres_link *link = state;
    struct postgres_group *group = link->group;

    link->group = NULL;
    return postgres_group_close(link, group, out_error);
}

static bool group_holds(const void *state)
{
    return ((const struct postgres_link *)state)->group != NULL;
}

const struct store_backend postgres_backend = {
    .name = "postgres",
    .open = open_server,
    .close = close_server,
    .abandon = abandon_server,
    .find_job = postgres_find_job,
    .list_jobs = postgres_list_jobs,
    .read = postgres_read_by_name,
    .get_snapshot = postgres_snapshot_by_name,
    .begin = begin,
    .change_read = change_read,
    .append = append,
    .change_get_snapshot = change_get_snapshot,
    .put_snapshot = put_snapshot,
    .delete_job = delete_job,
    .commit = commit,
    .rollback = rollback,
    .group_begin = group_begin,
    .group_end = group_end,
    .group_holds = group_holds,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Logs on a server, for many machines: changes. The lock of a job is the lock of its row. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres_group.h"
#include "store/postgres_read.h"
#include "store/postgres_schema.h"
#include "store/store_backend.h"
#include "store/store_text.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a server's tables: jobs, pages of their logs, snapshots. */
#include "store/postgres_read.h"

#include <string.h>

#include "base/error.h"
#include "store/store_text.h"

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

int postgres_find_job(void *state, const char *job, store_visit_job *visit, void *visitor,
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

int postgres_list_jobs(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error)
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

int postgres_read_events(struct postgres_link *link, postgres_ask *ask_page, uint64_t job,
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

int postgres_read_by_name(void *state, const char *job, const struct store_query *query, store_visit *visit,
                          void *visitor, struct fly_error *out_error)
{
    uint64_t id = 0;
    int code = postgres_find_job(state, job, keep_id, &id, out_error);

    return code < 0
               ? code
               : postgres_read_events(state, postgres_link_ask_anew, id, query, visit, visitor, out_error);
}

int postgres_get_snapshot(struct postgres_link *link, postgres_ask *ask_it, uint64_t job, const char *version,
                          uint64_t *out_number, struct buffer *out_bytes, struct fly_error *out_error)
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

int postgres_snapshot_by_name(void *state, const char *job, const char *version, uint64_t *out_number,
                              struct buffer *out_bytes, struct fly_error *out_error)
{
    uint64_t id = 0;
    int code = postgres_find_job(state, job, keep_id, &id, out_error);

    return code < 0 ? code
                    : postgres_get_snapshot(state, postgres_link_ask_anew, id, version, out_number, out_bytes,
                                            out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_read.h"

#include "base/error.h"
#include "store/store_text.h"

/* Columns of the statements that find and list jobs. */
enum { JOB_NAME, JOB_ID, JOB_HEAD, JOB_MADE, JOB_CHANGED };

static const char *text_at(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);

    return text != NULL ? (const char *)text : "";
}

static void read_job(sqlite3_stmt *statement, struct store_job *job)
{
    *job = (struct store_job){
        .name = text_at(statement, JOB_NAME),
        .id = (uint64_t)sqlite3_column_int64(statement, JOB_ID),
        .events = (uint64_t)sqlite3_column_int64(statement, JOB_HEAD),
        .made_us = sqlite3_column_int64(statement, JOB_MADE),
        .changed_us = sqlite3_column_int64(statement, JOB_CHANGED),
    };
}

/* Steps on, and distinguishes a failure of the statement from one of the visitor. */
static int end_reading(struct sqlite_link *link, sqlite3_stmt *statement, int stepped, int visited,
                       struct fly_error *out_error)
{
    int code = visited < 0 ? visited : 0;

    if (visited == 0 && stepped != SQLITE_DONE)
        code = sqlite_link_failed(link, "read", out_error);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code;
}

static int visit_jobs(struct sqlite_link *link, sqlite3_stmt *statement, store_visit_job *visit,
                      void *visitor, size_t *out_count, struct fly_error *out_error)
{
    struct store_job job;
    int stepped = SQLITE_ROW, visited = 0;

    *out_count = 0;
    while (visited == 0) {
        stepped = sqlite3_step(statement);
        if (stepped != SQLITE_ROW)
            break;
        read_job(statement, &job);
        visited = visit(visitor, &job, out_error);
        ++*out_count;
    }
    return end_reading(link, statement, stepped, visited, out_error);
}

/* Visits the job, if there is one. */
static int look_for_job(struct sqlite_link *link, const char *job, store_visit_job *visit, void *visitor,
                        size_t *out_count, struct fly_error *out_error)
{
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_FIND_JOB, out_error);

    *out_count = 0;
    if (statement == NULL)
        return sqlite_link_failed(link, "read", NULL);
    sqlite3_bind_text(statement, 1, job, -1, SQLITE_STATIC);
    return visit_jobs(link, statement, visit, visitor, out_count, out_error);
}

int sqlite_find_job(void *state, const char *job, store_visit_job *visit, void *visitor,
                    struct fly_error *out_error)
{
    size_t count;
    int code = look_for_job(state, job, visit, visitor, &count, out_error);

    return code == 0 && count == 0 ? store_no_job(job, out_error) : code;
}

int sqlite_list_jobs(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error)
{
    struct sqlite_link *link = state;
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_LIST_JOBS, out_error);
    size_t count;

    if (statement == NULL)
        return sqlite_link_failed(link, "read", NULL);
    return visit_jobs(link, statement, visit, visitor, &count, out_error);
}

/* Keeps what a change must know of its job; the name belongs to the caller. */
static int keep_job(void *state, const struct store_job *job, struct fly_error *out_error)
{
    struct store_change *change = state;

    (void)out_error;
    change->job_id = job->id;
    change->head = job->events;
    return 0;
}

static int id_of(struct sqlite_link *link, const char *job, uint64_t *out_id, struct fly_error *out_error)
{
    struct store_change found = {0};
    int code = sqlite_find_job(link, job, keep_job, &found, out_error);

    *out_id = found.job_id;
    return code;
}

int sqlite_read_events(struct sqlite_link *link, uint64_t job, const struct store_query *query,
                       store_visit *visit, void *visitor, struct fly_error *out_error)
{
    enum sqlite_statement which = query->key != NULL  ? SAY_READ_KEY
                                  : query->trial != 0 ? SAY_READ_TRIAL
                                                      : SAY_READ;
    sqlite3_stmt *statement = sqlite_link_statement(link, which, out_error);
    int stepped = SQLITE_ROW, visited = 0;

    if (statement == NULL)
        return sqlite_link_failed(link, "read", NULL);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)job);
    sqlite3_bind_int64(statement, 2, query->after > INT64_MAX ? INT64_MAX : (sqlite3_int64)query->after);
    sqlite3_bind_int64(statement, 3,
                       query->limit == 0 || query->limit > INT64_MAX ? -1 : (sqlite3_int64)query->limit);
    if (which != SAY_READ)
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)query->trial);
    if (which == SAY_READ_KEY)
        sqlite3_bind_text(statement, 5, query->key, -1, SQLITE_STATIC);
    while (visited == 0) {
        struct store_event event;

        stepped = sqlite3_step(statement);
        if (stepped != SQLITE_ROW)
            break;
        event = (struct store_event){
            .number = (uint64_t)sqlite3_column_int64(statement, 0),
            .time_us = sqlite3_column_int64(statement, 1),
            .kind = text_at(statement, 2),
            .trial = (uint64_t)sqlite3_column_int64(statement, 3),
            .key = text_at(statement, 4),
            .body = text_at(statement, 5),
        };
        visited = visit(visitor, &event, out_error);
    }
    return end_reading(link, statement, stepped, visited, out_error);
}

int sqlite_read_by_name(void *state, const char *job, const struct store_query *query, store_visit *visit,
                        void *visitor, struct fly_error *out_error)
{
    uint64_t id;
    int code = id_of(state, job, &id, out_error);

    return code < 0 ? code : sqlite_read_events(state, id, query, visit, visitor, out_error);
}

int sqlite_get_snapshot(struct sqlite_link *link, uint64_t job, const char *version, uint64_t *out_number,
                        struct buffer *out_bytes, struct fly_error *out_error)
{
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_GET_SNAPSHOT, out_error);
    uint64_t number = 0;
    int stepped, code;

    if (statement == NULL)
        return sqlite_link_failed(link, "read", NULL);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)job);
    sqlite3_bind_text(statement, 2, version, -1, SQLITE_STATIC);
    stepped = sqlite3_step(statement);
    if (stepped == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(statement, 1);

        number = (uint64_t)sqlite3_column_int64(statement, 0);
        if (bytes != NULL)
            buffer_append(out_bytes, bytes, (size_t)sqlite3_column_bytes(statement, 1));
        stepped = SQLITE_DONE;
    }
    code = end_reading(link, statement, stepped, 0, out_error);
    if (code == 0 && out_bytes->error < 0)
        code = error_set(out_error, out_bytes->error,
                         "a snapshot in the store '%.200s' is too large to be read; "
                         "allow more",
                         link->file.path);
    if (code == 0)
        *out_number = number;
    return code;
}

int sqlite_snapshot_by_name(void *state, const char *job, const char *version, uint64_t *out_number,
                            struct buffer *out_bytes, struct fly_error *out_error)
{
    uint64_t id;
    int code = id_of(state, job, &id, out_error);

    return code < 0 ? code : sqlite_get_snapshot(state, id, version, out_number, out_bytes, out_error);
}

int sqlite_identify_job(struct sqlite_link *link, struct store_change *change, bool *out_found,
                        struct fly_error *out_error)
{
    size_t count;
    int code = look_for_job(link, change->job, keep_job, change, &count, out_error);

    *out_found = count > 0;
    return code;
}

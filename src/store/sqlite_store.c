/* SPDX-License-Identifier: Apache-2.0 */
/* Logs in a file on one machine. The whole file has one lock: BEGIN IMMEDIATE takes it. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/sqlite_link.h"
#include "store/store_backend.h"
#include "store/store_text.h"

/*
 * Reads from a store in a file. Each function returns 0 or a negative code. Texts passed to a
 * visitor are valid only during that call. `state` is the struct sqlite_link.
 */

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

/* Like the functions of struct store_backend. */
static int sqlite_find_job(void *state, const char *job, store_visit_job *visit, void *visitor,
                           struct fly_error *out_error)
{
    size_t count;
    int code = look_for_job(state, job, visit, visitor, &count, out_error);

    return code == 0 && count == 0 ? store_no_job(job, out_error) : code;
}

static int sqlite_list_jobs(void *state, store_visit_job *visit, void *visitor, struct fly_error *out_error)
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

/* Reads the log of the job with that id. */
static int sqlite_read_events(struct sqlite_link *link, uint64_t job, const struct store_query *query,
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

static int sqlite_read_by_name(void *state, const char *job, const struct store_query *query,
                               store_visit *visit, void *visitor, struct fly_error *out_error)
{
    uint64_t id;
    int code = id_of(state, job, &id, out_error);

    return code < 0 ? code : sqlite_read_events(state, id, query, visit, visitor, out_error);
}

/* Appends the job's snapshot to `out_bytes`; the number is 0 if there is none. */
static int sqlite_get_snapshot(struct sqlite_link *link, uint64_t job, const char *version,
                               uint64_t *out_number, struct buffer *out_bytes, struct fly_error *out_error)
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

static int sqlite_snapshot_by_name(void *state, const char *job, const char *version, uint64_t *out_number,
                                   struct buffer *out_bytes, struct fly_error *out_error)
{
    uint64_t id;
    int code = id_of(state, job, &id, out_error);

    return code < 0 ? code : sqlite_get_snapshot(state, id, version, out_number, out_bytes, out_error);
}

/* Sets the id and the head of the job that `change` names, if there is one. */
static int sqlite_identify_job(struct sqlite_link *link, struct store_change *change, bool *out_found,
                               struct fly_error *out_error)
{
    size_t count;
    int code = look_for_job(link, change->job, keep_job, change, &count, out_error);

    *out_found = count > 0;
    return code;
}

static int open_file(const struct store_address *address, const struct store_options *options,
                     void **out_state, char **out_shown, struct fly_error *out_error)
{
    struct sqlite_link *link;
    int code = sqlite_link_open(address->text, options, &link, out_error);
    char *shown;

    if (code < 0)
        return code;
    shown = strdup(link->file.path);
    if (shown == NULL) {
        sqlite_link_close(link);
        return error_no_memory(out_error);
    }
    *out_state = link;
    *out_shown = shown;
    return 0;
}

static void close_file(void *state)
{
    sqlite_link_close(state);
}

/* SQLite's memory must leak: closing the database would touch the parent's locks. */
static void abandon_file(void *state)
{
    free(state);
}

static int change_read(void *state, struct store_change *change, const struct store_query *query,
                       store_visit *visit, void *visitor, struct fly_error *out_error)
{
    return sqlite_read_events(state, change->job_id, query, visit, visitor, out_error);
}

static int change_get_snapshot(void *state, struct store_change *change, const char *version,
                               uint64_t *out_number, struct buffer *out_bytes, struct fly_error *out_error)
{
    return sqlite_get_snapshot(state, change->job_id, version, out_number, out_bytes, out_error);
}

static int64_t machine_now_us(void)
{
    return clock_real.date(clock_real.state).ns / 1000;
}

static int make_job(struct sqlite_link *link, const char *job, struct fly_error *out_error)
{
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_MAKE_JOB, out_error);

    if (statement == NULL)
        return sqlite_link_failed(link, "written", NULL);
    sqlite3_bind_text(statement, 1, job, -1, SQLITE_STATIC);
    return sqlite_link_run(link, statement, "written", out_error);
}

static int find_or_make(struct sqlite_link *link, enum store_job_wish wish, struct store_change *change,
                        struct fly_error *out_error)
{
    bool found;
    int code = sqlite_identify_job(link, change, &found, out_error);

    if (code < 0 || found)
        return code;
    if (wish != STORE_MAKE_JOB)
        return store_no_job(change->job, out_error);
    code = make_job(link, change->job, out_error);
    return code < 0 ? code : sqlite_identify_job(link, change, &found, out_error);
}

static bool in_transaction(const struct sqlite_link *link)
{
    return sqlite3_get_autocommit(link->db) == 0;
}

static int lost_group(const struct sqlite_link *link, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EWRITE,
                     "the store '%.200s' has undone the changes that shared a commit, because one of them "
                     "failed; try again",
                     link->file.path);
}

/* Takes the file's lock or, in a group, a part of the transaction that holds it. */
static int take_lock(struct sqlite_link *link, struct fly_error *out_error)
{
    int code = 0;

    if (link->grouped && link->group_lost)
        return lost_group(link, out_error);
    if (!sqlite_file_stands(&link->file))
        return error_set(out_error, FLY_EWRITE,
                         "the store '%.200s' was removed or replaced while it was open; open it again",
                         link->file.path);
    if (!in_transaction(link))
        code = sqlite_link_say(link, SAY_BEGIN, "locked", out_error);
    if (code == 0 && link->grouped)
        code = sqlite_link_say(link, SAY_PART, "locked", out_error);
    return code;
}

/* Undoes the change and no other one of its group, unless SQLite has already undone all. */
static void rollback(void *state)
{
    struct sqlite_link *link = state;

    if (!link->grouped) {
        sqlite_link_undo(link);
        return;
    }
    if (in_transaction(link) && sqlite_link_say(link, SAY_UNDO_PART, "rolled back", NULL) == 0 &&
        sqlite_link_say(link, SAY_KEEP_PART, "rolled back", NULL) == 0)
        return;
    sqlite_link_undo(link);
    link->group_lost = true;
}

static int begin(void *state, enum store_job_wish wish, struct store_change *change,
                 struct fly_error *out_error)
{
    struct sqlite_link *link = state;
    int code = take_lock(link, out_error);

    if (code < 0)
        return code;
    code = find_or_make(link, wish, change, out_error);
    if (code < 0) {
        rollback(link);
        return code;
    }
    change->now_us = machine_now_us();
    return 0;
}

static int move_head(struct sqlite_link *link, uint64_t job, const struct store_event *event,
                     struct fly_error *out_error)
{
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_MOVE_HEAD, out_error);

    if (statement == NULL)
        return sqlite_link_failed(link, "written", NULL);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)job);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)event->number);
    sqlite3_bind_int64(statement, 3, event->time_us);
    return sqlite_link_run(link, statement, "written", out_error);
}

static int append(void *state, struct store_change *change, const struct store_event *event,
                  struct fly_error *out_error)
{
    struct sqlite_link *link = state;
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_APPEND, out_error);
    int code;

    if (statement == NULL)
        return sqlite_link_failed(link, "written", NULL);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)change->job_id);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)event->number);
    sqlite3_bind_int64(statement, 3, event->time_us);
    sqlite3_bind_text(statement, 4, event->kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, (sqlite3_int64)event->trial);
    sqlite3_bind_text(statement, 6, event->key, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 7, event->body, -1, SQLITE_STATIC);
    code = sqlite_link_run(link, statement, "written", out_error);
    /* Under the job's lock numbers are unique, so the conflict must be about the key. */
    if (code < 0 && event->key[0] != '\0' && sqlite3_extended_errcode(link->db) == SQLITE_CONSTRAINT_UNIQUE)
        return STORE_KEY_TAKEN;
    return code < 0 ? code : move_head(link, change->job_id, event, out_error);
}

static int put_snapshot(void *state, struct store_change *change, const char *version, uint64_t number,
                        const void *bytes, size_t byte_count, struct fly_error *out_error)
{
    struct sqlite_link *link = state;
    sqlite3_stmt *statement = sqlite_link_statement(link, SAY_PUT_SNAPSHOT, out_error);

    if (statement == NULL)
        return sqlite_link_failed(link, "written", NULL);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)change->job_id);
    sqlite3_bind_text(statement, 2, version, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)number);
    sqlite3_bind_blob(statement, 4, byte_count == 0 ? "" : bytes, (int)byte_count, SQLITE_STATIC);
    return sqlite_link_run(link, statement, "written", out_error);
}

static int delete_job(void *state, struct store_change *change, struct fly_error *out_error)
{
    static const enum sqlite_statement steps[] = {SAY_DELETE_SNAPSHOTS, SAY_DELETE_EVENTS, SAY_DELETE_JOB};
    struct sqlite_link *link = state;
    int code = 0;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && code == 0; i++) {
        sqlite3_stmt *statement = sqlite_link_statement(link, steps[i], out_error);

        if (statement == NULL)
            return sqlite_link_failed(link, "written", NULL);
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)change->job_id);
        code = sqlite_link_run(link, statement, "written", out_error);
    }
    return code;
}

/*
 * A failed sync leaves whole frames in the write-ahead log. They are not visible now, but the
 * recovery after a crash finds them, unless the next change overwrites them.
 */
static int commit_all(struct sqlite_link *link, struct fly_error *out_error)
{
    int code = sqlite_link_say(link, SAY_COMMIT, "written", out_error);

    if (code == 0)
        return 0;
    if (sqlite3_extended_errcode(link->db) == SQLITE_IOERR_FSYNC)
        code =
            error_set(out_error, FLY_EUNSURE,
                      "the store '%.200s' may have lost its last change: the disk failed to confirm it; see "
                      "the kernel's log for the disk",
                      link->file.path);
    sqlite_link_undo(link);
    return code;
}

static int commit(void *state, const struct store_change *change, struct fly_error *out_error)
{
    struct sqlite_link *link = state;
    int code;

    (void)change; /* each event already updates the job's row */
    if (!link->grouped)
        return commit_all(link, out_error);
    code = sqlite_link_say(link, SAY_KEEP_PART, "written", out_error);
    if (code < 0)
        rollback(link);
    return code;
}

/* The first change takes the lock. */
static int group_begin(void *state, const char *const *jobs, size_t count, struct fly_error *out_error)
{
    struct sqlite_link *link = state;

    (void)jobs, (void)count, (void)out_error;
    link->grouped = true;
    link->group_lost = false;
    return 0;
}

static int group_end(void *state, struct fly_error *out_error)
{
    struct sqlite_link *link = state;

    link->grouped = false;
    if (link->group_lost)
        return lost_group(link, out_error);
    return in_transaction(link) ? commit_all(link, out_error) : 0;
}

static bool group_holds(const void *state)
{
    return in_transaction(state);
}

const struct store_backend sqlite_backend = {
    .name = "sqlite",
    .open = open_file,
    .close = close_file,
    .abandon = abandon_file,
    .find_job = sqlite_find_job,
    .list_jobs = sqlite_list_jobs,
    .read = sqlite_read_by_name,
    .get_snapshot = sqlite_snapshot_by_name,
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

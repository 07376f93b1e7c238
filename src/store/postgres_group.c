/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    GROUP_JOBS = 64,
    GROUP_EVENTS = 512,
    GROUP_BYTES = 256 << 20, /* of statements */
};

struct group_job {
    char name[STORE_JOB_MAX + 1];
    uint64_t id, written, head; /* what the server has, and the last number including the group */
    int64_t first_us, last_us;
};

/* An event; its texts are owned, in one block. */
struct group_event {
    uint64_t job;
    struct store_event event;
    char *texts;
};

struct postgres_group {
    struct group_job jobs[GROUP_JOBS];
    size_t job_count;
    struct group_event events[GROUP_EVENTS];
    size_t event_count;
    size_t kept; /* number of events of committed changes */
    int64_t now_us;
    bool lost;
};

/* ---- statements ---- */

/*
 * The server plans the statements once per connection. Behind a pooler, those of an earlier
 * client may still exist.
 */
static const char sql_prepare[] =
    "DEALLOCATE ALL;"
    "PREPARE flyball_group_lock (text[]) AS "
    "SELECT name, id, head, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint "
    "FROM flyball_job WHERE name = ANY ($1) ORDER BY name FOR UPDATE SKIP LOCKED;"
    "PREPARE flyball_group_events (bigint[], bigint[], bigint[], text[], bigint[], text[], text[]) AS "
    "INSERT INTO flyball_event (job, number, time_us, kind, trial, key, body) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7);"
    "PREPARE flyball_group_heads (bigint[], bigint[], bigint[], bigint[]) AS "
    "UPDATE flyball_job SET head = new.head, changed_us = new.last_us, made_us = CASE flyball_job.head "
    "WHEN 0 THEN new.first_us ELSE made_us END FROM unnest($1, $2, $3, $4) AS new (id, head, last_us, "
    "first_us) WHERE flyball_job.id = new.id AND flyball_job.id = ANY ($1)"; /* uses the index at any size */

/*
 * Puts a text as an element of an array in E'{...}', which means the same under all settings of
 * the server. The array needs a backslash before quotes and backslashes; the literal doubles each
 * backslash and apostrophe.
 */
static void put_text(struct buffer *sql, const char *text)
{
    buffer_puts(sql, "\"");
    while (*text != '\0') {
        size_t plain = strcspn(text, "'\"\\");

        buffer_append(sql, text, plain);
        text += plain;
        if (*text == '\0')
            break;
        buffer_puts(sql, *text == '\'' ? "''" : *text == '"' ? "\\\\\"" : "\\\\\\\\");
        text++;
    }
    buffer_puts(sql, "\"");
}

static int ask(struct postgres_link *link, const struct buffer *sql, const char *doing,
               struct pg_result **out_result, struct fly_error *out_error)
{
    const struct postgres_question question = {.sql = sql->data};

    if (sql->error < 0)
        return error_no_memory(out_error);
    return postgres_link_ask(link, &question, doing, out_result, out_error);
}

static int prepare(struct postgres_link *link, struct fly_error *out_error)
{
    static const struct postgres_question question = {.sql = sql_prepare};
    int code = 0;

    if (link->connection == NULL || !link->prepared)
        code = postgres_link_ask_anew(link, &question, "locked", NULL, out_error);
    link->prepared = code == 0;
    return code;
}

static bool knows(const struct postgres_group *group, const char *job)
{
    for (size_t i = 0; i < group->job_count; i++) {
        if (strcmp(group->jobs[i].name, job) == 0)
            return true;
    }
    return false;
}

static void take_rows(struct postgres_link *link, struct postgres_group *group,
                      const struct pg_result *result)
{
    int rows = link->call.row_count(result);

    for (int row = 0; row < rows && group->job_count < GROUP_JOBS; row++) {
        struct group_job *job = &group->jobs[group->job_count];

        if (knows(group, link->call.value(result, row, 0)))
            continue;
        snprintf(job->name, sizeof job->name, "%s", link->call.value(result, row, 0));
        job->id = (uint64_t)postgres_number(link, result, row, 1);
        job->head = job->written = (uint64_t)postgres_number(link, result, row, 2);
        group->now_us = postgres_number(link, result, row, 3);
        group->job_count++;
    }
}

/* Locks rows in a fixed order and without waiting, so that two groups cannot wait for each other. */
static int lock_jobs(struct postgres_link *link, struct postgres_group *group, bool first,
                     const char *const *jobs, size_t count, struct fly_error *out_error)
{
    struct pg_result *result;
    struct buffer sql;
    int code;

    buffer_init(&sql, GROUP_BYTES);
    if (first)
        buffer_puts(&sql, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;");
    buffer_puts(&sql, "EXECUTE flyball_group_lock(E'{");
    for (size_t i = 0; i < count; i++) {
        buffer_puts(&sql, i > 0 ? "," : "");
        put_text(&sql, jobs[i]);
    }
    buffer_puts(&sql, "}')");
    code = ask(link, &sql, "locked", &result, out_error);
    buffer_deinit(&sql);
    if (code < 0)
        return code;
    take_rows(link, group, result);
    link->call.clear(result);
    return 0;
}

enum { EVENT_COLUMNS = 7, HEAD_COLUMNS = 4 };

static void put_event_value(struct buffer *sql, const struct group_event *kept, int column)
{
    const struct store_event *event = &kept->event;
    const int64_t numbers[] = {(int64_t)kept->job, (int64_t)event->number, event->time_us, 0,
                               (int64_t)event->trial};
    const char *const texts[EVENT_COLUMNS] = {[3] = event->kind, [5] = event->key, [6] = event->body};

    if (texts[column] != NULL)
        put_text(sql, texts[column]);
    else
        buffer_printf(sql, "%" PRId64, numbers[column]);
}

static void put_events(const struct postgres_group *group, struct buffer *sql)
{
    buffer_puts(sql, "EXECUTE flyball_group_events(");
    for (int column = 0; column < EVENT_COLUMNS; column++) {
        buffer_puts(sql, column > 0 ? ",E'{" : "E'{");
        for (size_t i = 0; i < group->kept; i++) {
            buffer_puts(sql, i > 0 ? "," : "");
            put_event_value(sql, &group->events[i], column);
        }
        buffer_puts(sql, "}'");
    }
    buffer_puts(sql, ");");
}

static void put_heads(const struct postgres_group *group, struct buffer *sql)
{
    buffer_puts(sql, "EXECUTE flyball_group_heads(");
    for (int column = 0; column < HEAD_COLUMNS; column++) {
        const char *between = column > 0 ? ",'{" : "'{";

        for (size_t i = 0; i < group->job_count; i++) {
            const struct group_job *job = &group->jobs[i];
            const int64_t numbers[HEAD_COLUMNS] = {(int64_t)job->id, (int64_t)job->head, job->last_us,
                                                   job->first_us};

            if (job->head == job->written)
                continue;
            buffer_printf(sql, "%s%" PRId64, between, numbers[column]);
            between = ",";
        }
        buffer_puts(sql, "}'");
    }
    buffer_puts(sql, ");");
}

/* ---- the whole ---- */

int postgres_group_open(struct postgres_link *link, const char *const *jobs, size_t count,
                        struct postgres_group **out_group, struct fly_error *out_error)
{
    struct postgres_group *group = calloc(1, sizeof *group);
    int code = FLY_EUNREACHABLE;

    if (group == NULL)
        return error_no_memory(out_error);
    /* Nothing is written yet, so if the connection to the server was lost, it is asked once more. */
    for (int i = 0; i < 2 && code == FLY_EUNREACHABLE; i++) {
        code = prepare(link, out_error);
        if (code == 0)
            code = lock_jobs(link, group, true, jobs, count, out_error);
    }
    if (code < 0) {
        postgres_link_undo(link);
        free(group);
        return code;
    }
    *out_group = group;
    return 0;
}

void postgres_group_abandon(struct postgres_group *group)
{
    for (size_t i = 0; group != NULL && i < group->event_count; i++)
        free(group->events[i].texts);
    free(group);
}

static int write_down(struct postgres_link *link, const struct postgres_group *group,
                      struct fly_error *out_error)
{
    struct buffer sql;
    int code;

    buffer_init(&sql, GROUP_BYTES);
    if (group->kept > 0) {
        put_events(group, &sql);
        put_heads(group, &sql);
    }
    buffer_puts(&sql, "COMMIT");
    if (sql.error < 0) {
        postgres_link_undo(link);
        code = error_no_memory(out_error);
    } else {
        code = postgres_link_commit(link, &(struct postgres_question){.sql = sql.data}, out_error);
    }
    buffer_deinit(&sql);
    return code;
}

int postgres_group_close(struct postgres_link *link, struct postgres_group *group,
                         struct fly_error *out_error)
{
    int code;

    if (group->lost) {
        postgres_link_undo(link);
        code = error_set(out_error, FLY_EWRITE,
                         "the store '%s' has undone the changes that shared a commit, because one of them "
                         "failed; try again",
                         link->shown);
    } else {
        code = write_down(link, group, out_error);
    }
    postgres_group_abandon(group);
    return code;
}

void postgres_group_break(struct postgres_group *group)
{
    group->lost = true;
}

/* ---- a change of it ---- */

static struct group_job *find_job(struct postgres_group *group, const char *name)
{
    for (size_t i = 0; i < group->job_count; i++) {
        if (strcmp(group->jobs[i].name, name) == 0)
            return &group->jobs[i];
    }
    return NULL;
}

int postgres_group_begin(struct postgres_link *link, struct postgres_group *group,
                         struct store_change *change, struct fly_error *out_error)
{
    const char *const name = change->job;
    const struct group_job *job = find_job(group, name);
    int code = 0;

    if (job == NULL && !group->lost && group->job_count < GROUP_JOBS) {
        code = lock_jobs(link, group, false, &name, 1, out_error);
        group->lost = code < 0;
        job = find_job(group, name);
    }
    if (code < 0)
        return code;
    if (job == NULL || group->lost || group->event_count == GROUP_EVENTS)
        return error_set(out_error, FLY_EBUSY,
                         "the job '%s' is not to be had in a group of the store '%s'; try it alone", name,
                         link->shown);
    change->job_id = job->id;
    change->head = job->head;
    change->now_us = group->now_us;
    return 0;
}

/* Copies an event; the texts of the copy live as long as the group. */
static bool copy_event(const struct store_event *event, struct group_event *out_copy)
{
    size_t kind = strlen(event->kind) + 1, key = strlen(event->key) + 1, body = strlen(event->body) + 1;
    char *texts = malloc(kind + key + body);

    if (texts == NULL)
        return false;
    out_copy->texts = texts;
    out_copy->event = *event;
    out_copy->event.kind = memcpy(texts, event->kind, kind);
    out_copy->event.key = memcpy(texts + kind, event->key, key);
    out_copy->event.body = memcpy(texts + kind + key, event->body, body);
    return true;
}

int postgres_group_append(struct postgres_group *group, const struct store_change *change,
                          const struct store_event *event, struct fly_error *out_error)
{
    struct group_event *copy = &group->events[group->event_count];

    if (group->event_count == GROUP_EVENTS)
        return error_set(out_error, FLY_EBUSY, "the job '%s' has too many events for a group; try it alone",
                         change->job);
    if (!copy_event(event, copy))
        return error_no_memory(out_error);
    copy->job = change->job_id;
    group->event_count++;
    return 0;
}

void postgres_group_commit(struct postgres_group *group, const struct store_change *change)
{
    struct group_job *job = find_job(group, change->job);

    if (change->appended > 0) {
        if (job->head == job->written)
            job->first_us = change->first_us;
        job->last_us = change->last_us;
        job->head = change->head;
    }
    group->kept = group->event_count;
}

void postgres_group_rollback(struct postgres_group *group)
{
    while (group->event_count > group->kept)
        free(group->events[--group->event_count].texts);
}

uint64_t postgres_group_written(const struct postgres_group *group, const struct store_change *change)
{
    for (size_t i = 0; i < group->job_count; i++) {
        if (group->jobs[i].id == change->job_id)
            return group->jobs[i].written;
    }
    return 0;
}

static bool matches(const struct group_event *kept, const struct store_change *change,
                    const struct store_query *query)
{
    const struct store_event *event = &kept->event;

    return kept->job == change->job_id && event->number > query->after &&
           (query->trial == 0 || event->trial == query->trial) &&
           (query->key == NULL || (event->key[0] != '\0' && strcmp(event->key, query->key) == 0));
}

int postgres_group_visit(const struct postgres_group *group, const struct store_change *change,
                         const struct store_query *query, uint64_t rows, store_visit *visit, void *visitor,
                         struct fly_error *out_error)
{
    int visited = 0;

    for (size_t i = 0; i < group->event_count && rows > 0 && visited == 0; i++) {
        if (!matches(&group->events[i], change, query))
            continue;
        visited = visit(visitor, &group->events[i].event, out_error);
        rows--;
    }
    return visited;
}

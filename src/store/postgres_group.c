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
    uint64_t id, written, head; /* what the server has, and what the group comes to */
    int64_t first_us, last_us;
};

/* Its texts are owned, in one block. */
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
    size_t kept; /* of the events: those of changes that were committed */
    int64_t now_us;
    bool lost;
};

/* ---- statements ---- */

/* A text that means itself whatever the server's settings: 'E' and quotes, with both special characters
 * doubled. */
static void put_text(struct buffer *sql, const char *text)
{
    buffer_puts(sql, "E'");
    while (*text != '\0') {
        size_t plain = strcspn(text, "'\\");

        buffer_append(sql, text, plain);
        text += plain;
        if (*text != '\0') {
            buffer_append(sql, text, 1);
            buffer_append(sql, text++, 1);
        }
    }
    buffer_puts(sql, "'");
}

static int ask(struct postgres_link *link, const struct buffer *sql, bool anew, struct pg_result **out_result,
               struct fly_error *out_error)
{
    const struct postgres_question question = {.sql = sql->data};

    if (sql->error < 0)
        return error_no_memory(out_error);
    return anew ? postgres_link_ask_anew(link, &question, "locked", out_result, out_error)
                : postgres_link_ask(link, &question, "written", out_result, out_error);
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

/* Locks rows, in one order and without waiting, so that two groups cannot wait for each other. */
static int lock_jobs(struct postgres_link *link, struct postgres_group *group, bool first,
                     const char *const *jobs, size_t count, struct fly_error *out_error)
{
    struct pg_result *result;
    struct buffer sql;
    int code;

    buffer_init(&sql, GROUP_BYTES);
    if (first)
        buffer_puts(&sql, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;");
    buffer_puts(&sql, "SELECT name, id, head, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint "
                      "FROM flyball_job WHERE name IN (");
    for (size_t i = 0; i < count; i++) {
        buffer_puts(&sql, i > 0 ? "," : "");
        put_text(&sql, jobs[i]);
    }
    buffer_puts(&sql, ") ORDER BY name FOR UPDATE SKIP LOCKED");
    code = ask(link, &sql, first, &result, out_error);
    buffer_deinit(&sql);
    if (code < 0)
        return code;
    take_rows(link, group, result);
    link->call.clear(result);
    return 0;
}

static void put_events(const struct postgres_group *group, struct buffer *sql)
{
    buffer_puts(sql, "INSERT INTO flyball_event (job, number, time_us, kind, trial, key, body) VALUES ");
    for (size_t i = 0; i < group->kept; i++) {
        const struct store_event *event = &group->events[i].event;

        buffer_printf(sql, "%s(%" PRIu64 ",%" PRIu64 ",%" PRId64 ",", i > 0 ? "," : "", group->events[i].job,
                      event->number, event->time_us);
        put_text(sql, event->kind);
        buffer_printf(sql, ",%" PRIu64 ",", event->trial);
        put_text(sql, event->key);
        buffer_puts(sql, ",");
        put_text(sql, event->body);
        buffer_puts(sql, ")");
    }
    buffer_puts(sql, ";");
}

static void put_heads(const struct postgres_group *group, struct buffer *sql)
{
    const char *between = "";

    buffer_puts(sql, "UPDATE flyball_job SET head = new.head, changed_us = new.last_us, made_us = CASE "
                     "flyball_job.head WHEN 0 THEN new.first_us ELSE made_us END FROM (VALUES ");
    for (size_t i = 0; i < group->job_count; i++) {
        const struct group_job *job = &group->jobs[i];

        if (job->head == job->written)
            continue;
        buffer_printf(sql,
                      "%s(%" PRIu64 "::bigint,%" PRIu64 "::bigint,%" PRId64 "::bigint,%" PRId64 "::bigint)",
                      between, job->id, job->head, job->last_us, job->first_us);
        between = ",";
    }
    buffer_puts(sql, ") AS new (id, head, last_us, first_us) WHERE flyball_job.id = new.id;");
}

/* ---- the whole ---- */

int postgres_group_open(struct postgres_link *link, const char *const *jobs, size_t count,
                        struct postgres_group **out_group, struct fly_error *out_error)
{
    struct postgres_group *group = calloc(1, sizeof *group);
    int code;

    if (group == NULL)
        return error_no_memory(out_error);
    code = lock_jobs(link, group, true, jobs, count, out_error);
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
    bool was_there = link->connection != NULL;
    struct pg_result *result;
    struct buffer sql;
    int code;

    buffer_init(&sql, GROUP_BYTES);
    if (group->kept > 0) {
        put_events(group, &sql);
        put_heads(group, &sql);
    }
    buffer_puts(&sql, "COMMIT");
    code = ask(link, &sql, false, &result, out_error);
    buffer_deinit(&sql);
    if (code == 0) {
        if (strcmp(link->call.command(result), "COMMIT") != 0)
            code = error_set(out_error, FLY_EWRITE,
                             "the store '%s' has undone the change; see the server's log", link->shown);
        link->call.clear(result);
        return code;
    }
    if (code == FLY_EUNREACHABLE && was_there)
        return error_set(
            out_error, FLY_EUNSURE,
            "the store '%s' was lost during a commit, so that it may have happened; look for its "
            "key in a new change before doing it again",
            link->shown);
    postgres_link_undo(link);
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

/* A copy of the event whose texts live as long as the group. */
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

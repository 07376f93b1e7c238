/* SPDX-License-Identifier: Apache-2.0 */
/* What came along to a job: read from its log, and told in words. */
#include "job/past/history_brought.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/job_words.h"

/* ---- reading ---- */

static struct job_brought_past *next_place(struct brought_list *list, struct arena *arena)
{
    if (list->count == list->capacity) {
        size_t capacity = 2 * list->capacity + 4;
        struct job_brought_past *wider = arena_alloc(arena, capacity, sizeof wider[0]);

        if (wider == NULL)
            return NULL;
        if (list->count > 0)
            memcpy(wider, list->items, list->count * sizeof wider[0]);
        list->items = wider;
        list->capacity = capacity;
    }
    return &list->items[list->count];
}

int brought_list_put(struct brought_list *list, const struct job_brought_past *past, struct arena *arena)
{
    struct job_brought_past *place = next_place(list, arena);

    if (place == NULL)
        return FLY_ENOMEM;
    *place = *past;
    list->count++;
    list->revisions += past->kind == PAST_REVISION;
    return 0;
}

static int take(struct brought_list *list, const struct brought_record *record, int64_t time_us,
                uint64_t before, struct arena *arena)
{
    struct job_brought_past past = {
        .kind = record->kind,
        .before = before,
        .time_us = time_us,
        .source = arena_strdup(arena, record->source),
        .revision = arena_strdup(arena, record->revision),
        .gpu_model = arena_strdup(arena, record->of_line ? record->hardware.gpu_model : ""),
        .batch_count = record->count};

    if (past.source == NULL || past.revision == NULL || past.gpu_model == NULL)
        return FLY_ENOMEM;
    for (size_t i = 0; i < record->count; i++)
        past.runs += record->batches[i].reached + record->batches[i].stopped;
    return brought_list_put(list, &past, arena);
}

int brought_list_add(struct brought_list *list, const struct store_event *event, json_t *body,
                     uint64_t before, struct arena *arena, struct fly_error *out_error)
{
    struct brought_record *record = malloc(sizeof *record);
    struct fly_error why;
    struct arena texts;
    int code;

    if (record == NULL)
        return error_no_memory(out_error);
    arena_init(&texts, RECORD_ARENA_MAX);
    if (record_read_brought(body, &texts, record, &why) < 0)
        code = record_refuse(event, &why, out_error);
    else if ((code = take(list, record, event->time_us, before, arena)) < 0)
        code = error_no_memory(out_error);
    arena_deinit(&texts);
    free(record);
    return code;
}

const struct job_brought_past *job_history_revision(const struct job_history *history, size_t number)
{
    for (size_t i = 0; i < history->brought_count && number > 0; i++) {
        number -= history->brought[i].kind == PAST_REVISION;
        if (number == 0)
            return &history->brought[i];
    }
    return NULL;
}

/* ---- words ---- */

enum { RUNS_TEXT_MAX = 96 };

/* Writes "8 runs of 2 batch sizes"; of pure costs "the costs of 2 batch sizes". */
static char *runs_text(const struct job_brought_past *brought, char text[RUNS_TEXT_MAX])
{
    const char *plural = brought->batch_count == 1 ? "" : "s";

    if (brought->runs == 0)
        snprintf(text, RUNS_TEXT_MAX, "the costs of %zu batch size%s", brought->batch_count, plural);
    else
        snprintf(text, RUNS_TEXT_MAX, "%" PRIu64 " run%s of %zu batch size%s", brought->runs,
                 brought->runs == 1 ? "" : "s", brought->batch_count, plural);
    return text;
}

char *job_brought_text(const struct job_brought_past *brought, char text[JOB_BROUGHT_TEXT_MAX])
{
    char runs[RUNS_TEXT_MAX];

    runs_text(brought, runs);
    if (brought->kind == PAST_HARDWARE)
        snprintf(text, JOB_BROUGHT_TEXT_MAX, "%s on %.100s came along to %.100s", runs, brought->source,
                 brought->gpu_model);
    else if (brought->kind == PAST_JOB)
        snprintf(text, JOB_BROUGHT_TEXT_MAX, "%s of the job '%.100s' came along", runs, brought->source);
    else if (brought->batch_count == 0)
        snprintf(text, JOB_BROUGHT_TEXT_MAX, "the revision '%.200s' began", brought->revision);
    else
        snprintf(text, JOB_BROUGHT_TEXT_MAX, "the revision '%.200s' began, and %s before it came along",
                 brought->revision, runs);
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A job's log as text: why a trial was chosen, and the export of the whole log. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/shapes.h"
#include "job/past/history.h"
#include "job/past/job_unknown.h"
#include "shapes/json_words.h"

enum { SHOWN_MAX = 1 << 20 };

/* Finds the trial among those of the job. */
static int find_trial(const struct job_shown *shown, const char *job, uint64_t *trial,
                      struct fly_error *out_error)
{
    if (shown->trials == 0)
        return error_set(out_error, FLY_EEXHAUSTED, "job '%s' has not run yet", job);
    if (*trial == 0)
        *trial = shown->trials;
    return *trial <= shown->trials ? 0
                                   : error_set(out_error, FLY_ENOTFOUND,
                                               "job '%s' has no trial %" PRIu64 "; its newest is %" PRIu64,
                                               job, *trial, shown->trials);
}

int job_trial_read(const struct jobs *jobs, const char *job, uint64_t trial, uint64_t *out_trial,
                   uint32_t *out_max_epochs, struct trial_past *out_past, struct fly_error *out_error)
{
    struct trial_past past = trial_past_empty;
    struct store_query query = {0};
    struct job_shown shown;
    uint32_t max_epochs = 0;
    struct arena arena;
    int code;

    arena_init(&arena, SHOWN_MAX);
    code = jobs->backend->show(jobs->self, job, &arena, &shown, out_error);
    if (code == 0) {
        max_epochs = shown.definition.max_epochs;
        code = find_trial(&shown, job, &trial, out_error);
    } else {
        code = job_unknown_explain(jobs, job, code, out_error);
    }
    arena_deinit(&arena);
    if (code < 0)
        return code;
    query.trial = trial;
    code = jobs->backend->read(jobs->self, job, &query, trial_past_visit, &past, out_error);
    if (code == 0 && past.proposed == NULL)
        code = error_set(out_error, FLY_EDATA, "job '%s': trial %" PRIu64 " was never proposed", job, trial);
    if (code < 0) {
        trial_past_deinit(&past);
        return code;
    }
    *out_trial = trial;
    *out_max_epochs = max_epochs;
    *out_past = past;
    return 0;
}

int job_explain(const struct jobs *jobs, const char *job, uint64_t trial, struct arena *arena,
                struct job_explanation *out_explanation, struct fly_error *out_error)
{
    struct trial_past past;
    struct job_explanation explanation;
    uint32_t max_epochs;
    char *numbers = NULL;
    int code = job_trial_read(jobs, job, trial, &trial, &max_epochs, &past, out_error);

    if (code < 0)
        return code;
    if (past.record.numbers != NULL)
        numbers = json_words(past.record.numbers, STORE_BODY_MAX);
    explanation = (struct job_explanation){
        .trial = trial,
        .recurrence = past.record.recurrence,
        .try_number = past.record.try_number,
        .batch_size = past.record.batch_size,
        .limit_w = past.limit_w,
        .proposed_us = past.proposed_us,
        .policy = arena_strdup(arena, past.record.policy),
        .reason = past.record.reason,
        .capped = past.record.capped,
        .last_try = past.record.last_try,
        .sentence = arena_strdup(arena, past.record.why),
        .numbers = arena_strdup(arena, numbers != NULL ? numbers : "{}"),
    };
    if (explanation.policy == NULL || explanation.sentence == NULL || explanation.numbers == NULL)
        code = error_no_memory(out_error);
    else
        *out_explanation = explanation;
    free(numbers);
    trial_past_deinit(&past);
    return code;
}

struct exporting {
    job_sink *sink;
    void *context;
};

static int export_event(void *context, const struct store_event *event, struct fly_error *out_error)
{
    const struct exporting *exporting = context;
    struct fly_error why = {.text = ""};
    char *text;
    int code = shape_write_text(&shape_event, event, &text, &why);

    if (code < 0)
        return error_set(out_error, code, "event %" PRIu64 ": %.300s", event->number, why.text);
    code = exporting->sink(exporting->context, text, strlen(text), out_error);
    free(text);
    return code < 0 ? code : exporting->sink(exporting->context, "\n", 1, out_error);
}

int job_export(const struct jobs *jobs, const char *job, job_sink *sink, void *context,
               struct fly_error *out_error)
{
    static const struct store_query everything = {0};
    struct exporting exporting = {sink, context};

    return jobs->backend->read(jobs->self, job, &everything, export_event, &exporting, out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A job's log as text: why a trial was chosen, and the export of the whole log. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/shapes.h"
#include "job/core/trial_past.h"
#include "job/past/history.h"
#include "shapes/json_words.h"

static int newest_trial(const struct jobs *jobs, const char *job, struct arena *arena, uint64_t *out_trial,
                        struct fly_error *out_error)
{
    struct job_shown shown;
    int code = jobs->backend->show(jobs->self, job, arena, &shown, out_error);

    if (code < 0)
        return code;
    if (shown.trials == 0)
        return error_set(out_error, FLY_ENOTFOUND, "job '%s' has no trials yet", job);
    *out_trial = shown.trials;
    return 0;
}

int job_explain(const struct jobs *jobs, const char *job, uint64_t trial, struct arena *arena,
                struct job_explanation *out_explanation, struct fly_error *out_error)
{
    struct trial_past past = trial_past_empty;
    struct job_explanation explanation = {.trial = trial};
    struct store_query query = {.limit = 1};
    char *numbers = NULL;
    int code = 0;

    if (trial == 0)
        code = newest_trial(jobs, job, arena, &explanation.trial, out_error);
    if (code < 0)
        return code;
    query.trial = explanation.trial;
    code = jobs->backend->read(jobs->self, job, &query, trial_past_visit, &past, out_error);
    if (code == 0 && past.proposed == NULL)
        code = error_set(out_error, FLY_ENOTFOUND, "job '%s' has no trial %" PRIu64, job, explanation.trial);
    if (code == 0) {
        if (past.record.numbers != NULL)
            numbers = json_words(past.record.numbers, STORE_BODY_MAX);
        explanation.reason = past.record.reason;
        explanation.sentence = arena_strdup(arena, past.record.why);
        explanation.numbers = arena_strdup(arena, numbers != NULL ? numbers : "{}");
        if (explanation.sentence == NULL || explanation.numbers == NULL)
            code = error_no_memory(out_error);
    }
    if (code == 0)
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

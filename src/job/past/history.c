/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "job/core/job_words.h"
#include "job/core/shapes.h"
#include "job/past/history_fold.h"
#include "shapes/json_words.h"

enum { NAMES_BYTES = 64 << 20 };

/* Returns the store's name nearest to `name`, or NULL; it is in the arena. */
static const char *find_nearest(const struct jobs *jobs, const char *name, struct arena *arena,
                                size_t *out_count)
{
    struct job_list list = {.count = 0};
    const char **names;
    int nearest;

    *out_count = 0;
    if (jobs->backend == NULL || jobs->backend->list(jobs->self, arena, &list, NULL) < 0)
        return NULL;
    *out_count = list.count;
    names = arena_alloc(arena, list.count + 1, sizeof names[0]);
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < list.count; i++)
        names[i] = list.jobs[i].name;
    nearest = word_nearest(name, names, list.count);
    return nearest >= 0 ? names[nearest] : NULL;
}

int job_unknown_explain(const struct jobs *jobs, const char *name, int code, struct fly_error *out_error)
{
    struct arena arena;
    const char *nearest;
    size_t count;

    if (code != FLY_ENOTFOUND)
        return code;
    arena_init(&arena, NAMES_BYTES);
    nearest = find_nearest(jobs, name, &arena, &count);
    if (nearest != NULL)
        error_set(out_error, code, "no job '%.100s' in the store; did you mean '%s'?", name, nearest);
    else
        error_set(out_error, code, "no job '%.100s' in the store, which has %zu; %s", name, count,
                  count > 0 ? "'flyball job list' shows them" : "name another store");
    arena_deinit(&arena);
    return code;
}

double job_unix_s(int64_t time_us)
{
    return time_us == 0 ? NAN : (double)time_us / 1e6;
}

double job_history_limit_w(const struct job_history *history, const struct job_row *trial)
{
    const struct fly_job_hardware *machine = &history->machines[trial->machine];
    bool own = isnan(machine->highest_limit_w) || trial->left_alone;

    return own && isnan(trial->trial.limit_w) ? machine->max_power_w / machine->gpu_count
                                              : trial->trial.limit_w;
}

const char *job_row_outcome(const struct job_row *row)
{
    return row->running ? "running" : row->nothing_learnt ? "nothing_learnt" : job_outcome_name(row->outcome);
}

bool job_row_without_epoch(const struct job_row *row)
{
    return !row->running && !row->nothing_learnt && row->outcome == TRIAL_CRASHED &&
           row->trial.cause != NULL && strcmp(row->trial.cause, JOB_END_WITHOUT_EPOCH) == 0;
}

const char *job_row_said(const struct job_row *row)
{
    return job_row_without_epoch(row) ? "no epoch" : job_row_outcome(row);
}

bool job_row_is_untold(const struct job_row *row)
{
    return row->running && row->trial.epochs == 0 && !(row->trial.time_s > 0.0);
}

int brought_list_put(struct brought_list *list, const struct job_brought_past *past, struct arena *arena)
{
    if (list->count == list->capacity) {
        size_t capacity = 2 * list->capacity + 4;
        struct job_brought_past *wider = arena_alloc(arena, capacity, sizeof wider[0]);

        if (wider == NULL)
            return FLY_ENOMEM;
        if (list->count > 0)
            memcpy(wider, list->items, list->count * sizeof wider[0]);
        list->items = wider;
        list->capacity = capacity;
    }
    list->items[list->count++] = *past;
    list->revisions += past->kind == PAST_REVISION;
    return 0;
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

struct job_grid_sum job_history_grid_sum(const struct job_history *history)
{
    struct job_grid_sum sum = {0};

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];

        if (row->running || !(row->trial.whole_energy_j > 0.0))
            continue;
        if (isnan(row->run_grid_amount)) {
            sum.unknown++;
            continue;
        }
        sum.known++;
        sum.amount += row->run_grid_amount;
    }
    if (sum.known == 0)
        sum.amount = NAN;
    return sum;
}

/* ---- as text ---- */

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
                struct fly_job_why *out_why, struct fly_error *out_error)
{
    struct trial_past past;
    struct fly_job_why why;
    uint32_t max_epochs;
    char *numbers = NULL;
    int code = job_trial_read(jobs, job, trial, &trial, &max_epochs, &past, out_error);

    if (code < 0)
        return code;
    if (past.record.numbers != NULL)
        numbers = json_words(past.record.numbers, STORE_BODY_MAX);
    why = (struct fly_job_why){
        .size = sizeof why,
        .trial = trial,
        .recurrence = past.record.recurrence,
        .try_number = past.record.try_number,
        .batch_size = past.record.batch_size,
        .limit_w = past.limit_w,
        .proposed_unix_s = job_unix_s(past.proposed_us),
        .policy = arena_strdup(arena, past.record.policy),
        .reason = job_reason_name(past.record.reason),
        .capped = past.record.capped,
        .last_try = past.record.last_try,
        .sentence = arena_strdup(arena, past.record.why),
        .numbers = arena_strdup(arena, numbers != NULL ? numbers : "{}"),
    };
    if (why.policy == NULL || why.sentence == NULL || why.numbers == NULL)
        code = error_no_memory(out_error);
    else
        *out_why = why;
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

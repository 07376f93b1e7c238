/* SPDX-License-Identifier: Apache-2.0 */
/* Folds the begin of a trial: what was decided for it, who took it up, and its power profile. */
#include "job/decide/state_fold_begin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "job/decide/brought.h"
#include "job/decide/data_growth.h"
#include "job/decide/line.h"
#include "job/decide/start_up.h"

/* Tells the policy: a recurrence begins for it with the first try in which it decides something. */
static int tell_policy(struct folding *folding, struct job_recurrence *recurrence,
                       const struct job_trial *trial, const struct proposed_record *record)
{
    struct job_line *line = &folding->state->lines[trial->line];
    const struct proposal proposal = {.batch = trial->batch,
                                      .limit_rule = record->limit_rule,
                                      .limit_w = record->limit_w,
                                      .reason = record->reason,
                                      .policy_version = record->policy_version,
                                      .random_after = record->random_after};
    uint64_t begun_anew = line->decider.begun_anew;
    int code = 0;

    if (!recurrence->begun || recurrence->line != trial->line) {
        recurrence->begun = true;
        recurrence->line = trial->line;
        recurrence->line_number = line->recurrences++;
        recurrence->policy_tries = 0;
        code = fold_tell(folding, trial->line, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
    }
    recurrence->policy_tries++;
    if (code == 0)
        code = fold_tell(folding, trial->line,
                         &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
    if (line->decider.begun_anew != begun_anew) {
        line->anew_trial = trial->number;
        line->anew_us = folding->event->time_us;
    }
    return code;
}

static struct job_trial make_trial(const struct folding *folding, const struct proposed_record *record)
{
    struct job_trial trial = {
        .number = folding->event->trial,
        .recurrence = record->recurrence,
        .try_number = record->try_number,
        .line = record->line,
        .limit_w = record->limit_w,
        .wants_profile = record->wants_profile,
        .profiles = record->wants_profile,
        .reason = record->reason,
        .counted = record->counted,
        .capped = record->capped,
        .last_try = record->last_try,
        .epochs = record->epochs,
        .stop_by_us = record->stop_by_us,
        .heartbeat_s = record->heartbeat_s,
        .metric = NAN,
        .progress = target_progress_none,
        .reference_per_kwh = NAN,
        .startup_energy_j = NAN,
        .startup_time_s = NAN,
        .sign_us = folding->event->time_us,
    };

    snprintf(trial.run, sizeof trial.run, "%s", record->run);
    snprintf(trial.submission, sizeof trial.submission, "%s", record->submission);
    return trial;
}

static int begin_trial(struct folding *folding, const struct proposed_record *record)
{
    struct job_state *state = folding->state;
    struct job_recurrence *recurrence;
    struct job_trial trial;
    int code = 0;

    if (folding->event->trial != state->trials + 1)
        return fold_refuse_member(folding, "trial", "the next number");
    if (record->recurrence > state->recurrences || record->line > state->line_count ||
        (record->line == state->line_count && !record->new_line))
        return fold_refuse_member(folding, "recurrence, line", "one that is known, or the next");
    /* The line may exist already, when the decision needed it. */
    if (record->line == state->line_count)
        code = brought_add_line(state, &record->hardware, folding->error);
    if (code < 0)
        return code;
    state->lines[record->line].described = true;
    trial = make_trial(folding, record);
    trial.batch = job_line_batch(&state->lines[trial.line], record->batch_size);
    if (trial.batch == state->lines[trial.line].spec->batch_count)
        return fold_refuse_member(folding, "batch_size", "one of the job's");
    if (record->recurrence == state->recurrences)
        state->recurrences++;
    recurrence = job_state_recurrence(state, record->recurrence);
    if (recurrence == NULL)
        recurrence = job_state_submit(state, record->recurrence);
    snprintf(recurrence->submission, sizeof recurrence->submission, "%s", record->submission);
    recurrence->tries = record->try_number + 1;
    trial.index = state->lines[trial.line].decider.trials;
    if (trial.counted)
        code = tell_policy(folding, recurrence, &trial, record);
    if (code < 0)
        return code;
    state->trials++;
    return job_state_open(state, &trial, folding->error);
}

int fold_proposed(struct folding *folding)
{
    struct proposed_record record;
    struct fly_error why;
    struct arena arena;
    int code;

    arena_init(&arena, RECORD_ARENA_MAX);
    code = record_read_proposed(folding->body, &arena, &record, &why);
    code = code == 0 ? begin_trial(folding, &record) : fold_refuse(folding, &why);
    arena_deinit(&arena);
    return code;
}

int fold_attempt(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct attempt_record record;
    struct fly_error why;

    if (record_read_attempt(folding->body, &record, &why) < 0)
        return fold_refuse(folding, &why);
    if (trial == NULL)
        return 0;
    start_up_next_attempt(trial);
    trial->past_energy_j += trial->energy_j;
    trial->past_time_s += trial->time_s;
    trial->energy_j = trial->time_s = 0.0;
    trial->attempt = record.attempt;
    fold_heard_of(folding);
    trial->reported = false;
    trial->longest_s = 0.0;
    trial->sign_us = folding->event->time_us;
    return 0;
}

int fold_profiled(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct profiled_record *record = malloc(sizeof *record);
    struct fly_error why;
    int code = 0;

    if (record == NULL)
        return error_no_memory(folding->error);
    if (record_read_profiled(folding->body, record, &why) < 0)
        code = fold_refuse(folding, &why);
    if (code == 0 && trial != NULL) {
        const double units = data_growth_units(fold_line(folding), trial, record->units_per_epoch);
        const struct profile_measured measured = {.batch = trial->batch,
                                                  .points = record->points,
                                                  .count = record->count,
                                                  .units_per_epoch = units};

        if (record->folded)
            code = fold_tell(folding, trial->line,
                             &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured});
        if (code == 0 && record->folded) {
            fold_line(folding)->facts[trial->batch].units_per_epoch = units;
            fold_line(folding)->parts[trial->batch].count = 0;
        }
        trial->wants_profile = false;
        trial->limit_w = record->limit_w;
        trial->epochs = record->epochs;
    }
    free(record);
    return code;
}

int fold_profiled_part(struct folding *folding)
{
    struct profiled_part_record *record = malloc(sizeof *record);
    struct job_line *line = NULL;
    struct fly_error why;
    size_t batch = 0;
    int read, code;

    if (record == NULL)
        return error_no_memory(folding->error);
    read = record_read_profiled_part(folding->body, record, &why);
    if (read == 0 && record->line < folding->state->line_count)
        line = &folding->state->lines[record->line];
    if (line != NULL)
        batch = job_line_batch(line, record->batch_size);
    if (read < 0)
        code = fold_refuse(folding, &why);
    else if (line == NULL || batch == line->spec->batch_count)
        code = fold_refuse_member(folding, "line, batch_size", "one that is known");
    else
        code = profile_part_take(&line->parts[batch], &line->arena, record->points, record->count,
                                 folding->error);
    free(record);
    return code;
}

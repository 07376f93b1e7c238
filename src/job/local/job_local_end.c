/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a trial as its runner reports. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/local/job_local.h"

int local_append_end(struct local_change *change, uint64_t trial, const struct ended_record *record,
                     struct fly_error *out_error)
{
    char key[STORE_KEY_MAX + 1];

    snprintf(key, sizeof key, "end/%" PRIu64, trial);
    return local_append(change, RECORD_ENDED, trial, key, record, out_error);
}

/* ---- end ---- */

/* Sums up what the whole run took, with what the caller knows of its last attempt. */
static void sum_up(const struct trial_past *past, const struct job_end *end, struct job_ended *out_ended)
{
    bool newest = end->attempt == past->attempt;
    double told_j = trial_told_j(past->energy_j, past->time_s);

    out_ended->energy_j = past->past_energy_j + (newest && !isnan(end->energy_j) ? end->energy_j : told_j);
    out_ended->time_s = past->past_time_s + (newest && !isnan(end->time_s) ? end->time_s : past->time_s);
}

static double newest_reference(const struct job_end *end, const struct trial_past *past)
{
    double told = record_known(end->reference_per_kwh);

    return isnan(told) ? past->reference_per_kwh : told;
}

/* What all attempts took before their first steps. */
static void sum_startup(const struct trial_past *past, const struct job_end *end, struct ended_record *record)
{
    bool told = record_known(end->startup_time_s) > 0.0;

    record->startup_energy_j =
        past->past_startup_energy_j + record_known(told ? end->startup_energy_j : past->startup_energy_j);
    record->startup_time_s =
        past->past_startup_time_s + record_known(told ? end->startup_time_s : past->startup_time_s);
}

/* The trial's end is on record; the figures of the whole run may be missing yet. */
static int close_ended(struct local_change *change, const struct job_end *end, const struct trial_past *past,
                       struct job_ended *out_ended, struct fly_error *out_error)
{
    struct closed_record record = {.attempt = end->attempt, .text = end->text};
    char key[STORE_KEY_MAX + 1];

    sum_up(past, end, out_ended);
    out_ended->outcome = past->how.outcome;
    if (past->closed || past->how.stop == JOB_STOP_NONE) { /* a reported end was already for the whole run */
        out_ended->repeated = true;
        out_ended->energy_j = past->closed ? past->run_energy_j : past->how.energy_j;
        out_ended->time_s = past->closed ? past->run_time_s : past->how.time_s;
        return 0;
    }
    record.energy_j = out_ended->energy_j;
    record.time_s = out_ended->time_s;
    if (isnan(past->how.reference_per_kwh)) /* a frozen reference stays */
        record.reference_per_kwh = newest_reference(end, past);
    out_ended->energy_after_j = record.energy_j - past->how.energy_j;
    snprintf(key, sizeof key, "close/%" PRIu64 "/%u", end->trial, end->attempt);
    return local_append(change, RECORD_CLOSED, end->trial, key, &record, out_error);
}

static int check_end(const struct local_change *change, const struct job_end *end,
                     const struct trial_past *past, struct fly_error *out_error)
{
    bool targeted = change->state->definition.target != JOB_NO_TARGET;

    if (end->attempt != past->attempt)
        return error_set(out_error, FLY_ESTATE, "job '%s': trial %" PRIu64 " is at attempt %u, not %u",
                         change->job, end->trial, past->attempt, end->attempt);
    if (end->outcome == TRIAL_REACHED && targeted)
        return error_set(out_error, FLY_ESTATE,
                         "job '%s': no report of trial %" PRIu64 " reached the target; report that epoch",
                         change->job, end->trial);
    if (end->outcome == TRIAL_REFUSED && past->epochs_done > 0)
        return error_set(out_error, FLY_ESTATE, "job '%s': trial %" PRIu64 " has run; it was not refused",
                         change->job, end->trial);
    return 0;
}

struct end_call {
    const struct job_end *end;
    struct job_ended ended;
};

static int end_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    struct end_call *asked = call;
    const struct job_end *end = asked->end;
    struct job_ended *out_ended = &asked->ended;
    struct ended_record record = {.outcome = end->outcome, .attempt = end->attempt, .text = end->text};
    struct trial_past past;
    int code = local_past(change, end->trial, 0, &past, out_error);

    if (code < 0)
        return code;
    *out_ended = (struct job_ended){.outcome = end->outcome, .ends = !past.ended};
    snprintf(out_ended->gpu_model, sizeof out_ended->gpu_model, "%s",
             change->state->lines[past.record.line].gpu_model);
    if (past.ended) {
        code = close_ended(change, end, &past, out_ended, out_error);
    } else {
        code = check_end(change, end, &past, out_error);
        sum_up(&past, end, out_ended);
        record.epochs = past.epochs_done;
        record.metric = trial_past_metric(&past, &change->state->definition);
        record.energy_j = out_ended->energy_j;
        record.time_s = out_ended->time_s;
        record.reference_per_kwh = newest_reference(end, &past);
        record.nothing_learnt = end->nothing_learnt && end->outcome == TRIAL_CRASHED && past.epochs_done == 0;
        sum_startup(&past, end, &record);
        if (code == 0)
            code = local_append_end(change, end->trial, &record, out_error);
    }
    trial_past_deinit(&past);
    return code < 0 ? code : local_expire(change, NULL, out_error);
}

int local_end(void *self, const struct job_end *end, struct job_ended *out_ended, struct fly_error *out_error)
{
    struct end_call call = {.end = end};
    int code = call_check_end(end, out_error);

    if (code < 0)
        return code;
    code = local_call(self, end->job, end->trial, false, end_within, &call, out_error);
    if (code == 0)
        *out_ended = call.ended;
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Records how a trial goes on and how it ends. Each operation is one change. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "job/decide/data_growth.h"
#include "job/local/job_local.h"

static int local_append_end(struct local_change *change, uint64_t trial, const struct ended_record *record,
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

/* The reference to freeze: what is told now, else the newest. */
static double newest_reference(double told, double before)
{
    told = record_known(told);
    return isnan(told) ? before : told;
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
        record.reference_per_kwh = newest_reference(end->reference_per_kwh, past->reference_per_kwh);
    out_ended->energy_after_j = record.energy_j - past->how.energy_j;
    snprintf(key, sizeof key, "close/%" PRIu64 "/%u", end->trial, end->attempt);
    return local_append(change, RECORD_CLOSED, end->trial, key, &record, out_error);
}

static int check_end(const struct local_change *change, const struct job_end *end,
                     const struct trial_past *past, struct fly_error *out_error)
{
    bool targeted = change->state->definition.target != FLY_TARGET_NONE;

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
        record.reference_per_kwh = newest_reference(end->reference_per_kwh, past.reference_per_kwh);
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

/* ---- heartbeat ---- */

static int heartbeat_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    const struct job_beat *beat = call;
    const struct heartbeat_record record = {beat->attempt, beat->energy_j, beat->time_s};
    const struct job_trial *trial = job_state_trial(change->state, beat->trial);
    int code = local_lost_is_there(change, out_error);

    if (code != 0)
        return code;
    if (trial == NULL)
        code = error_set(out_error, beat->trial - 1 < change->state->trials ? FLY_ESTATE : FLY_ENOTFOUND,
                         "job '%s': trial %" PRIu64 " does not run", beat->job, beat->trial);
    else if (trial->attempt != beat->attempt)
        code = error_set(out_error, FLY_ESTATE, "job '%s': trial %" PRIu64 " is at attempt %u, not %u",
                         beat->job, beat->trial, trial->attempt, beat->attempt);
    /* Its own sign of life comes first, or it would expire itself. */
    if (code == 0)
        code = local_append(change, RECORD_HEARTBEAT, beat->trial, "", &record, out_error);
    return code < 0 ? code : local_expire(change, NULL, out_error);
}

int local_heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    struct job_beat call = *beat;
    int code = call_check_beat(beat, out_error);

    return code < 0 ? code
                    : local_call(self, beat->job, beat->trial, false, heartbeat_within, &call, out_error);
}

/* ---- report ---- */

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Notes whether the trial's end is on record, and which. */
static int note_end(struct local_change *change, uint64_t trial, struct job_answered *answered,
                    struct fly_error *out_error)
{
    struct ended_record record;
    char key[STORE_KEY_MAX + 1];
    json_t *body;
    int found;

    snprintf(key, sizeof key, "end/%" PRIu64, trial);
    found = local_find(change, key, NULL, &body, out_error);
    if (found != 1)
        return found;
    found = record_read(RECORD_ENDED, body, NULL, &record, out_error);
    json_decref(body);
    if (found < 0)
        return found;
    answered->ended = true;
    answered->outcome = record.outcome;
    return 0;
}

/* That report is on record: it is the same again, or contradicts it. */
static int repeat_report(struct local_change *change, const struct job_epoch *epoch, json_t *body,
                         struct job_answered *out_answered, struct fly_error *out_error)
{
    const struct job_trial *trial;
    struct epoch_record record;
    struct fly_error why;
    int code = record_read(RECORD_EPOCH, body, NULL, &record, &why);

    json_decref(body);
    if (code < 0)
        return error_set(out_error, FLY_EDATA, "job '%s': a report on record cannot be read: %.200s",
                         change->job, why.text);
    if (!same_number(record.metric, epoch->metric) || !same_number(record.energy_j, epoch->energy_j) ||
        record.time_s != epoch->time_s)
        return error_set(out_error, FLY_ECONFLICT,
                         "job '%s': epoch %u of trial %" PRIu64 ", attempt %u is on record with metric %s, "
                         "%s J and %s s; the first report stays",
                         change->job, epoch->epoch, epoch->trial, epoch->attempt,
                         number_text(record.metric).text, number_text(record.energy_j).text,
                         number_text(record.time_s).text);
    *out_answered = (struct job_answered){.answer = record.answer,
                                          .stop = record.stop,
                                          .repeated = true,
                                          .late = record.late,
                                          .epochs = record.epochs,
                                          .energy_j = record.total_energy_j,
                                          .time_s = record.total_time_s};
    trial = job_state_trial(change->state, epoch->trial);
    if (trial != NULL)
        snprintf(out_answered->gpu_model, sizeof out_answered->gpu_model, "%s",
                 change->state->lines[trial->line].gpu_model);
    return note_end(change, epoch->trial, out_answered, out_error);
}

static int append_epoch(struct local_change *change, const struct job_epoch *epoch,
                        const struct epoch_record *record, struct job_answered *out_answered,
                        struct fly_error *out_error)
{
    char key[STORE_KEY_MAX + 1];

    snprintf(key, sizeof key, "epoch/%" PRIu64 "/%u/%u", epoch->trial, epoch->attempt, epoch->epoch);
    *out_answered = (struct job_answered){.answer = record->answer,
                                          .stop = record->stop,
                                          .late = record->late,
                                          .epochs = record->epochs,
                                          .energy_j = record->total_energy_j,
                                          .time_s = record->total_time_s};
    return local_append(change, RECORD_EPOCH, epoch->trial, key, record, out_error);
}

/* A report of a trial that has ended, or of an attempt that was given up: only recorded. */
static int report_in_vain(struct local_change *change, const struct job_epoch *epoch,
                          struct job_answered *out_answered, struct fly_error *out_error)
{
    struct epoch_record record = {.attempt = epoch->attempt,
                                  .epoch = epoch->epoch,
                                  .metric = epoch->metric,
                                  .energy_j = epoch->energy_j,
                                  .time_s = epoch->time_s,
                                  .reference_per_kwh = epoch->reference_per_kwh,
                                  .steps = epoch->steps,
                                  .startup_told = true,
                                  .startup_energy_j = record_known(epoch->startup_energy_j),
                                  .startup_time_s = record_known(epoch->startup_time_s),
                                  .answer = JOB_STOP,
                                  .stop = JOB_STOP_ENDED,
                                  .late = true};
    const struct job_line *line;
    struct trial_past past;
    int code = local_past(change, epoch->trial, 0, &past, out_error);

    if (code < 0)
        return code;
    record.total_energy_j = past.past_energy_j + past.energy_j;
    record.total_time_s = past.past_time_s + past.time_s;
    line = &change->state->lines[past.record.line];
    if (epoch->attempt > past.attempt)
        code = error_set(out_error, FLY_ESTATE, "job '%s': trial %" PRIu64 " has %u attempts, and no %u",
                         change->job, epoch->trial, past.attempt, epoch->attempt);
    trial_past_deinit(&past);
    if (code == 0)
        code = append_epoch(change, epoch, &record, out_answered, out_error);
    if (code == 0)
        snprintf(out_answered->gpu_model, sizeof out_answered->gpu_model, "%s", line->gpu_model);
    return code < 0 ? code : note_end(change, epoch->trial, out_answered, out_error);
}

/*
 * A program that reports after so many steps whatever the batch size is has other epochs at each. The steps
 * of epochs that have the same samples cannot be equal, unless they are few.
 */
static int check_samples(const struct local_change *change, const struct job_trial *trial,
                         const struct job_epoch *epoch, struct fly_error *out_error)
{
    const struct job_line *line = &change->state->lines[trial->line];
    size_t other = data_growth_same_steps(line, trial, epoch->steps);

    if (change->state->definition.report_every_samples > 0 || other == line->spec->batch_count)
        return 0;
    return error_set(
        out_error, FLY_EUSAGE,
        "job '%s': trial %" PRIu64 " reports every %u steps at batch size %u, as others did at %u: "
        "its epochs have other samples and cannot be compared; report after the same number of "
        "samples, or register the job with report_every_samples (--report-every-samples %u)",
        change->job, epoch->trial, epoch->steps, line->spec->batches[trial->batch].size,
        line->spec->batches[other].size, epoch->steps * line->spec->batches[line->spec->default_batch].size);
}

static int check_order(const struct local_change *change, const struct job_trial *trial,
                       const struct job_epoch *epoch, struct fly_error *out_error)
{
    if (!trial->reported)
        return 0;
    if (epoch->epoch <= trial->epochs_done)
        return error_set(out_error, FLY_EDATA,
                         "job '%s': epoch %u of trial %" PRIu64 " after epoch %u: expected a later one",
                         change->job, epoch->epoch, epoch->trial, trial->epochs_done);
    if (epoch->energy_j < trial->energy_j || epoch->time_s < trial->time_s)
        return error_set(out_error, FLY_EDATA,
                         "job '%s': trial %" PRIu64 " had taken %s J and %s s, and now %s J and %s s: "
                         "report sums since the attempt's start",
                         change->job, epoch->trial, number_text(trial->energy_j).text,
                         number_text(trial->time_s).text, number_text(epoch->energy_j).text,
                         number_text(epoch->time_s).text);
    return 0;
}

/* The outcome if the answer ends the trial. */
static bool ends_with(const struct fly_job_definition *definition, enum job_stop stop,
                      enum trial_outcome *out_outcome)
{
    switch (stop) {
    case JOB_STOP_TARGET:
        *out_outcome = TRIAL_REACHED;
        return true;
    case JOB_STOP_EPOCHS:
        *out_outcome = definition->target == FLY_TARGET_NONE ? TRIAL_REACHED : TRIAL_NOT_REACHED;
        return true;
    case JOB_STOP_COST:
    case JOB_STOP_DEADLINE:
        *out_outcome = TRIAL_STOPPED;
        return true;
    case JOB_STOP_NONE:
    case JOB_STOP_ENDED:
        break;
    }
    return false;
}

/* The metric that counts when the trial ends with this report. */
static double counted_metric(const struct fly_job_definition *definition, const struct job_trial *trial,
                             const struct job_epoch *epoch)
{
    const struct target_progress progress =
        job_trial_progress(definition, trial, epoch->epoch, epoch->metric);

    return target_counted(definition, &progress, epoch->metric);
}

static int report_open(struct local_change *change, const struct job_trial *trial,
                       const struct job_epoch *epoch, struct job_answered *out_answered,
                       struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &change->state->definition;
    struct epoch_record record = {.attempt = epoch->attempt,
                                  .epoch = epoch->epoch,
                                  .metric = epoch->metric,
                                  .energy_j = epoch->energy_j,
                                  .time_s = epoch->time_s,
                                  .reference_per_kwh = epoch->reference_per_kwh,
                                  .steps = epoch->steps,
                                  .startup_told = true,
                                  .startup_energy_j = record_known(epoch->startup_energy_j),
                                  .startup_time_s = record_known(epoch->startup_time_s),
                                  .afterwards = epoch->afterwards,
                                  .late = trial->lost,
                                  .total_energy_j = trial->past_energy_j + epoch->energy_j,
                                  .total_time_s = trial->past_time_s + epoch->time_s};
    struct ended_record end = {.attempt = epoch->attempt,
                               .epochs = epoch->epoch,
                               .metric = counted_metric(definition, trial, epoch),
                               .energy_j = record.total_energy_j,
                               .time_s = record.total_time_s,
                               .reference_per_kwh =
                                   newest_reference(epoch->reference_per_kwh, trial->reference_per_kwh),
                               .startup_energy_j = trial->past_startup_energy_j + record.startup_energy_j,
                               .startup_time_s = trial->past_startup_time_s + record.startup_time_s};
    const struct job_line *line = &change->state->lines[trial->line];
    bool decided = trial->decided;
    int code = check_order(change, trial, epoch, out_error);

    if (code == 0)
        code = check_samples(change, trial, epoch, out_error);
    if (code == 0)
        code = decide_report(change->state, trial, change->now_us, &record, out_error);
    if (code == 0)
        code = append_epoch(change, epoch, &record, out_answered, out_error);
    out_answered->ended = decided;
    out_answered->outcome = TRIAL_REACHED;
    snprintf(out_answered->gpu_model, sizeof out_answered->gpu_model, "%s", line->gpu_model);
    if (code < 0 || decided || !ends_with(definition, record.stop, &end.outcome))
        return code;
    end.stop = record.stop;
    out_answered->ended = out_answered->ends = true;
    out_answered->outcome = end.outcome;
    return local_append_end(change, epoch->trial, &end, out_error);
}

/* Whether the state alone shows that this report cannot be on record. */
static bool is_next(const struct job_trial *trial, const struct job_epoch *epoch)
{
    return trial != NULL && epoch->attempt == trial->attempt &&
           (!trial->reported || epoch->epoch > trial->epochs_done);
}

static int find_epoch(struct local_change *change, const struct job_epoch *epoch, json_t **out_body,
                      struct fly_error *out_error)
{
    char key[STORE_KEY_MAX + 1];

    snprintf(key, sizeof key, "epoch/%" PRIu64 "/%u/%u", epoch->trial, epoch->attempt, epoch->epoch);
    return local_find(change, key, NULL, out_body, out_error);
}

struct report_call {
    const struct job_epoch *epoch;
    struct job_answered answered;
};

static int report_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    struct report_call *asked = call;
    const struct job_epoch *epoch = asked->epoch;
    struct job_answered *out_answered = &asked->answered;
    const struct job_trial *trial = job_state_trial(change->state, epoch->trial);
    json_t *body = NULL;
    int code = is_next(trial, epoch) ? 0 : find_epoch(change, epoch, &body, out_error);

    if (code != 0)
        return code < 0 ? code : repeat_report(change, epoch, body, out_answered, out_error);
    if (trial != NULL && epoch->attempt == trial->attempt)
        code = report_open(change, trial, epoch, out_answered, out_error);
    else
        code = report_in_vain(change, epoch, out_answered, out_error);
    /* Its own sign of life came first, or it would expire itself. */
    return code < 0 ? code : local_expire(change, NULL, out_error);
}

int local_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                 struct fly_error *out_error)
{
    struct report_call call = {.epoch = epoch};
    int code = call_check_epoch(epoch, out_error);

    if (code < 0)
        return code;
    code = local_call(self, epoch->job, epoch->trial, false, report_within, &call, out_error);
    if (code == 0)
        *out_answered = call.answered;
    return code;
}

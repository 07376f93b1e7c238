/* SPDX-License-Identifier: Apache-2.0 */
/* A job's events, one function each. */
#include "job/state_fold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/definition.h"
#include "job/job_record.h"
#include "job/line.h"
#include "model/objective_check.h"

/* One event on its way into the state. */
struct folding {
    struct job_state *state;
    const struct store_event *event;
    struct members members;
    struct job_trial *trial; /* the event's, if it is open */
    const struct batch_policy *const *plugins;
    struct fly_error *error;
};

static int refuse(const struct folding *folding)
{
    const struct job_state *state = folding->state;

    return error_set(folding->error, FLY_EDATA, "job '%s', event %" PRIu64 " ('%s'): '%s': expected %s",
                     state->defined ? state->definition.name : "", folding->event->number,
                     folding->event->kind, folding->members.wrong != NULL ? folding->members.wrong : "",
                     folding->members.expected != NULL ? folding->members.expected : "something else");
}

static int refuse_member(struct folding *folding, const char *name, const char *expected)
{
    members_refuse(&folding->members, name, expected);
    return refuse(folding);
}

static struct job_line *line_of(const struct folding *folding)
{
    return &folding->state->lines[folding->trial->line];
}

static int tell(const struct folding *folding, size_t line, const struct event *event)
{
    return decider_fold(&folding->state->lines[line].decider, event, folding->error);
}

/* ---- the job ---- */

static int fold_defined(struct folding *folding)
{
    struct job_definition definition = {0};
    struct fly_error why = {.text = ""};
    int code = definition_from_json(folding->members.object, &folding->state->arena, &definition, &why);

    if (code == FLY_ENOMEM)
        return error_no_memory(folding->error);
    if (code < 0)
        return error_set(folding->error, FLY_EDATA, "event %" PRIu64 ": %.300s", folding->event->number,
                         why.text);
    code = job_definition_check(&definition, folding->error);
    return code < 0 ? code : job_state_define(folding->state, &definition, folding->plugins, folding->error);
}

static int fold_set(struct folding *folding)
{
    struct job_state *state = folding->state;
    struct job_setting setting;

    record_read_setting(&folding->members, &setting);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    if (setting.set_control_every)
        state->control_every = setting.control_every;
    if (setting.set_pin) {
        state->pin_batch_size = setting.pin_batch_size;
        state->pin_limit_w = setting.pin_limit_w;
    }
    if (!setting.set_objective || folding->event->number <= state->objective_from)
        return 0;
    if (objective_check(&setting.objective, 1.0, NULL) < 0 ||
        definition_allows(&state->definition, &setting.objective, NULL) < 0)
        return refuse_member(folding, "objective", "an objective in its range");
    /* What was observed has other costs now. */
    job_state_deinit(state);
    job_state_init(state);
    state->objective = setting.objective;
    state->objective_from = folding->event->number;
    return JOB_FOLD_ANEW;
}

/* ---- a trial begins ---- */

/* The policy's share: its recurrence begins with the first try in which it has a say. */
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
    int code = 0;

    if (!recurrence->begun || recurrence->line != trial->line) {
        recurrence->begun = true;
        recurrence->line = trial->line;
        recurrence->line_number = line->recurrences++;
        recurrence->policy_tries = 0;
        code = tell(folding, trial->line, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
    }
    recurrence->policy_tries++;
    if (code == 0)
        code =
            tell(folding, trial->line, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
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
        .reference_per_kwh = NAN,
        .sign_us = folding->event->time_us,
    };

    snprintf(trial.run, sizeof trial.run, "%s", record->run);
    snprintf(trial.submission, sizeof trial.submission, "%s", record->submission);
    return trial;
}

static int fold_proposed(struct folding *folding)
{
    struct job_state *state = folding->state;
    double limits_w[JOB_LIMITS_MAX];
    struct proposed_record record;
    struct job_recurrence *recurrence;
    struct job_trial trial;
    int code = 0;

    record_read_proposed(&folding->members, limits_w, &record);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    if (folding->event->trial != state->trials + 1)
        return refuse_member(folding, "trial", "the next number");
    if (record.recurrence > state->recurrences || record.line > state->line_count ||
        (record.line == state->line_count && !record.new_line))
        return refuse_member(folding, "recurrence, line", "one that is known, or the next");
    /* The line may stand there already: whoever decided needed it. */
    if (record.line == state->line_count)
        code = job_state_add_line(state, &record.hardware, folding->error);
    if (code < 0)
        return code;
    trial = make_trial(folding, &record);
    trial.batch = job_line_batch(&state->lines[trial.line], record.batch_size);
    if (trial.batch == state->lines[trial.line].spec->batch_count)
        return refuse_member(folding, "batch_size", "one of the job's");
    if (record.recurrence == state->recurrences)
        state->recurrences++;
    recurrence = job_state_recurrence(state, record.recurrence);
    if (recurrence == NULL)
        recurrence = job_state_submit(state, record.recurrence);
    snprintf(recurrence->submission, sizeof recurrence->submission, "%s", record.submission);
    recurrence->tries = record.try_number + 1;
    trial.index = state->lines[trial.line].decider.trials;
    if (trial.counted)
        code = tell_policy(folding, recurrence, &trial, &record);
    if (code < 0)
        return code;
    state->trials++;
    return job_state_open(state, &trial, folding->error);
}

/* An expired trial that is heard of again has not fallen silent. */
static void heard_of(const struct folding *folding)
{
    line_of(folding)->facts[folding->trial->batch].silent -= folding->trial->silent;
    folding->trial->silent = false;
}

static int fold_attempt(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct attempt_record record;

    record_read_attempt(&folding->members, &record);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    if (trial == NULL)
        return 0;
    trial->past_energy_j += trial->energy_j;
    trial->past_time_s += trial->time_s;
    trial->energy_j = trial->time_s = 0.0;
    trial->attempt = record.attempt;
    heard_of(folding);
    trial->reported = false;
    trial->longest_s = 0.0;
    trial->sign_us = folding->event->time_us;
    return 0;
}

static int fold_profiled(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct profiled_record *record = malloc(sizeof *record);
    int code = 0;

    if (record == NULL)
        return error_no_memory(folding->error);
    record_read_profiled(&folding->members, record);
    if (folding->members.wrong != NULL)
        code = refuse(folding);
    if (code == 0 && trial != NULL) {
        const struct profile_measured measured = {trial->batch, record->points, record->count};

        if (record->folded)
            code = tell(folding, trial->line,
                        &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured});
        if (code == 0 && record->folded) {
            line_of(folding)->facts[trial->batch].units_per_epoch = record->units_per_epoch;
            line_of(folding)->parts[trial->batch].count = 0;
        }
        trial->wants_profile = false;
        trial->limit_w = record->limit_w;
        trial->epochs = record->epochs;
    }
    free(record);
    return code;
}

static int fold_profiled_part(struct folding *folding)
{
    struct profiled_part_record *record = malloc(sizeof *record);
    struct job_line *line;
    size_t batch;
    int code;

    if (record == NULL)
        return error_no_memory(folding->error);
    record_read_profiled_part(&folding->members, record);
    line = record->line < folding->state->line_count ? &folding->state->lines[record->line] : NULL;
    batch = line != NULL ? job_line_batch(line, record->batch_size) : 0;
    if (folding->members.wrong != NULL)
        code = refuse(folding);
    else if (line == NULL || batch == line->spec->batch_count)
        code = refuse_member(folding, "line, batch_size", "one that is known");
    else
        code = profile_part_take(&line->parts[batch], &line->arena, record->points, record->count,
                                 folding->error);
    free(record);
    return code;
}

/* ---- it runs ---- */

static void note_sign(const struct folding *folding)
{
    int64_t now_us = folding->event->time_us;

    heard_of(folding);
    if (now_us > folding->trial->sign_us)
        folding->trial->sign_us = now_us;
}

static int fold_heartbeat(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct heartbeat_record record;

    record_read_heartbeat(&folding->members, &record);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    if (trial == NULL || record.attempt != trial->attempt)
        return 0;
    note_sign(folding);
    if (isfinite(record.energy_j) && isfinite(record.time_s)) {
        trial->energy_j = fmax(trial->energy_j, record.energy_j);
        trial->time_s = fmax(trial->time_s, record.time_s);
    }
    return 0;
}

static int fold_epoch(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct epoch_record record;
    struct epoch_reported reported;

    record_read_epoch(&folding->members, &record);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    if (trial == NULL || record.attempt != trial->attempt)
        return 0;
    trial->longest_s =
        fmax(trial->longest_s,
             fmax(record.time_s - trial->time_s, 1e-6 * (double)(folding->event->time_us - trial->sign_us)));
    note_sign(folding);
    trial->reported = true;
    trial->epochs_done = record.epoch;
    trial->metric = record.metric;
    if (!isnan(record.reference_per_kwh))
        trial->reference_per_kwh = record.reference_per_kwh;
    trial->energy_j = record.energy_j;
    trial->time_s = record.time_s;
    if (!trial->counted || isnan(record.total_energy_j))
        return 0;
    reported = (struct epoch_reported){.trial = trial->index,
                                       .batch = trial->batch,
                                       .epoch = record.epoch,
                                       .metric = record.metric,
                                       .reached = record.stop == JOB_STOP_TARGET,
                                       .energy_j = record.total_energy_j,
                                       .time_s = record.total_time_s};
    return tell(folding, trial->line, &(struct event){.kind = EVENT_EPOCH_REPORTED, .reported = &reported});
}

/* ---- it ends ---- */

/* A trial that had to make room for another try says nothing of its batch size. */
static enum trial_outcome learned(const struct ended_record *record)
{
    return record->stop == JOB_STOP_DEADLINE ? TRIAL_CRASHED : record->outcome;
}

/* What no policy can put a price on says as little to it. */
static enum trial_outcome told(const struct ended_record *record)
{
    enum trial_outcome outcome = learned(record);

    return outcome_observed(outcome) && isnan(record->energy_j) ? TRIAL_CRASHED : outcome;
}

static int tell_end(const struct folding *folding, const struct ended_record *record)
{
    const struct job_trial *trial = folding->trial;
    const struct job_line *line = line_of(folding);
    const struct job_recurrence *recurrence = job_state_recurrence(folding->state, trial->recurrence);
    const struct trial_ended ended = {
        .trial = trial->index,
        .late = trial->lost,
        .recurrence = recurrence != NULL ? recurrence->line_number : trial->recurrence,
        .try_number = trial->try_number,
        .batch = trial->batch,
        .limit_w = isnan(trial->limit_w) ? batch_highest_limit_w(&line->spec->batches[trial->batch])
                                         : trial->limit_w,
        .outcome = told(record),
        .crashed = record->outcome == TRIAL_CRASHED,
        .energy_j = record->energy_j,
        .time_s = record->time_s};

    if (!trial->counted)
        return 0;
    return tell(folding, trial->line, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

static int fold_expiry(struct folding *folding, const struct ended_record *record)
{
    struct job_trial *trial = folding->trial;
    int code = 0;

    if (trial->decided) {
        job_state_shut(folding->state, trial);
        return 0;
    }
    if (!trial->lost)
        code = tell_end(folding, record);
    line_of(folding)->facts[trial->batch].silent += !trial->silent;
    trial->lost = trial->silent = true;
    job_state_forget_silent(folding->state);
    return code;
}

static void observe(const struct folding *folding, const struct ended_record *record)
{
    const struct job_trial *trial = folding->trial;

    if (outcome_observed(learned(record)))
        job_line_observe(line_of(folding),
                         &(struct line_observation){.batch = trial->batch,
                                                    .limit_w = trial->limit_w,
                                                    .profiled = trial->profiles,
                                                    .reached = record->outcome == TRIAL_REACHED,
                                                    .epochs = record->epochs,
                                                    .energy_j = record->energy_j,
                                                    .time_s = record->time_s});
}

/* Cut between characters: what becomes of it has to be UTF-8 again. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t length = strlen(text);

    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(out, text, length);
    out[length] = '\0';
}

static void note_crash(const struct folding *folding, const struct ended_record *record)
{
    struct batch_facts *facts = &line_of(folding)->facts[folding->trial->batch];

    facts->crashed++;
    copy_text(facts->crash_text, sizeof facts->crash_text, record->text);
}

static int note_overflow(const struct folding *folding)
{
    struct job_line *line = line_of(folding);
    uint32_t local = line->spec->batches[folding->trial->batch].size / line->world_size;

    if (line->overflowing == 0 || local < line->overflowing)
        line->overflowing = local;
    return job_lines_exclude(folding->state, folding->error);
}

static void note_reference(struct job_state *state, double reference_per_kwh)
{
    if (!isnan(reference_per_kwh))
        state->reference_per_kwh = reference_per_kwh;
}

static int fold_ended(struct folding *folding)
{
    struct job_state *state = folding->state;
    struct job_trial *trial = folding->trial;
    struct job_recurrence *recurrence;
    struct ended_record record;
    int code;

    record_read_ended(&folding->members, &record);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    if (trial == NULL)
        return 0;
    note_reference(state, record.reference_per_kwh);
    if (record.outcome == TRIAL_EXPIRED)
        return fold_expiry(folding, &record);
    if (trial->decided)
        return refuse_member(folding, "trial", "one whose end is not known");
    code = tell_end(folding, &record);
    observe(folding, &record);
    heard_of(folding);
    if (record.outcome == TRIAL_CRASHED)
        note_crash(folding, &record);
    if (code == 0 && record.outcome == TRIAL_OUT_OF_MEMORY)
        code = note_overflow(folding);
    recurrence = job_state_recurrence(state, trial->recurrence);
    if (record.outcome == TRIAL_REACHED && recurrence != NULL)
        job_state_finish(state, recurrence);
    if (record.stop == JOB_STOP_TARGET && state->definition.trains_on) {
        trial->decided = true;
        trial->decided_energy_j = record.energy_j;
        trial->decided_time_s = record.time_s;
    } else {
        job_state_shut(state, trial);
    }
    return code;
}

static int fold_closed(struct folding *folding)
{
    struct closed_record record;

    record_read_closed(&folding->members, &record);
    if (folding->members.wrong != NULL)
        return refuse(folding);
    note_reference(folding->state, record.reference_per_kwh);
    if (folding->trial != NULL && folding->trial->decided)
        job_state_shut(folding->state, folding->trial);
    return 0;
}

static int (*const folds[])(struct folding *folding) = {
    [RECORD_DEFINED] = fold_defined,   [RECORD_SET] = fold_set,
    [RECORD_PROPOSED] = fold_proposed, [RECORD_ATTEMPT] = fold_attempt,
    [RECORD_PROFILED] = fold_profiled, [RECORD_HEARTBEAT] = fold_heartbeat,
    [RECORD_EPOCH] = fold_epoch,       [RECORD_ENDED] = fold_ended,
    [RECORD_CLOSED] = fold_closed,     [RECORD_PROFILED_PART] = fold_profiled_part,
};
_Static_assert(sizeof folds / sizeof folds[0] == RECORD_KINDS, "one function for every kind");

int job_state_fold_body(struct job_state *state, const struct store_event *event, json_t *body,
                        const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    enum record_kind kind = record_kind_parse(event->kind);
    struct folding folding = {.state = state, .event = event, .plugins = plugins, .error = out_error};
    int code;

    if (kind == RECORD_KINDS)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "event %" PRIu64 ": kind '%.60s' is not known here; use a newer version",
                         event->number, event->kind);
    if (event->number != state->number + 1 || (kind == RECORD_DEFINED) == state->defined)
        return error_set(out_error, FLY_EDATA,
                         "event %" PRIu64 " ('%s') is out of order after event %" PRIu64
                         "; a log begins with its definition",
                         event->number, event->kind, state->number);
    folding.members = members_of(body);
    folding.trial = job_state_trial(state, event->trial);
    code = folds[kind](&folding);
    if (code == 0) {
        state->number = event->number;
        state->last_us = event->time_us;
    }
    return code;
}

int job_state_fold(struct job_state *state, const struct store_event *event,
                   const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    json_t *body = json_loads(event->body, JSON_REJECT_DUPLICATES, NULL);
    int code = job_state_fold_body(state, event, body, plugins, out_error);

    json_decref(body);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Folds a job's events, one function each; those of a trial's begin and end have files of their own. */
#include "job/decide/state_fold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/core/definition.h"
#include "job/core/definition_json.h"
#include "job/core/job_words.h"
#include "job/decide/data_growth.h"
#include "job/decide/line.h"
#include "job/decide/start_up.h"
#include "job/decide/state_fold_begin.h"
#include "job/decide/state_fold_brought.h"
#include "job/decide/state_fold_end.h"
#include "model/objective_check.h"

/* ---- the job ---- */

static void take_owners(struct job_state *state, const char *owners)
{
    if (owners == NULL || owners[0] == '\0')
        return;
    snprintf(state->owners, sizeof state->owners, "%s", strcmp(owners, JOB_OWNERS_NONE) != 0 ? owners : "");
}

static int fold_defined(struct folding *folding)
{
    struct job_definition definition = {0};
    struct fly_error why = {.text = ""};
    const char *owners = "";
    int code = definition_from_json(folding->body, &folding->state->arena, &definition, &why);

    if (code == 0)
        code = record_read_owners(folding->body, &owners, &why);
    if (code == FLY_ENOMEM)
        return error_no_memory(folding->error);
    if (code < 0)
        return error_set(folding->error, FLY_EDATA, "event %" PRIu64 ": %.300s", folding->event->number,
                         why.text);
    code = job_definition_check(&definition, folding->error);
    take_owners(folding->state, owners);
    return code < 0 ? code : job_state_define(folding->state, &definition, folding->plugins, folding->error);
}

/* Forgets what was folded but what holds for the whole fold, so that the log is folded anew. */
static int fold_anew(struct job_state *state)
{
    struct fly_objective objective = state->objective;
    struct job_policy_set policy_set = state->policy_set;
    uint64_t objective_from = state->objective_from;

    job_state_deinit(state);
    job_state_init(state);
    state->objective = objective;
    state->objective_from = objective_from;
    state->policy_set = policy_set;
    return JOB_FOLD_ANEW;
}

/* What was observed tells another policy other things. Returns whether it is another one. */
static bool take_policy(struct folding *folding, const struct job_setting *setting)
{
    struct job_policy_set *set = &folding->state->policy_set;

    if (setting->policy == NULL || setting->policy[0] == '\0' || folding->event->number <= set->from)
        return false;
    set->from = folding->event->number;
    snprintf(set->name, sizeof set->name, "%s", setting->policy);
    snprintf(set->sha256, sizeof set->sha256, "%s",
             setting->policy_sha256 != NULL ? setting->policy_sha256 : "");
    return true;
}

static int fold_set(struct folding *folding)
{
    struct job_state *state = folding->state;
    struct job_setting setting;
    struct fly_error why;
    bool anew;

    if (record_read_setting(folding->body, &setting, &why) < 0)
        return fold_refuse(folding, &why);
    if (setting.set_control_every)
        state->control_every = setting.control_every;
    if (setting.set_pin) {
        state->pin_batch_size = setting.pin_batch_size;
        state->pin_limit_w = setting.pin_limit_w;
    }
    if (setting.set_recurrences_left)
        state->recurrences_end =
            setting.recurrences_left > 0 ? state->recurrences + setting.recurrences_left : 0;
    take_owners(state, setting.owners);
    anew = take_policy(folding, &setting);
    if (!setting.set_objective || folding->event->number <= state->objective_from)
        return anew ? fold_anew(state) : 0;
    if (objective_check(&setting.objective, 1.0, NULL) < 0 ||
        definition_allows(&state->definition, &setting.objective, NULL) < 0)
        return fold_refuse_member(folding, "objective", "an objective in its range");
    /* What was observed has other costs under the new objective. */
    state->objective = setting.objective;
    state->objective_from = folding->event->number;
    return fold_anew(state);
}

/* ---- it runs ---- */

static void note_sign(const struct folding *folding)
{
    int64_t now_us = folding->event->time_us;

    fold_heard_of(folding);
    if (now_us > folding->trial->sign_us)
        folding->trial->sign_us = now_us;
}

static int fold_heartbeat(struct folding *folding)
{
    struct job_trial *trial = folding->trial;
    struct heartbeat_record record;
    struct fly_error why;

    if (record_read_heartbeat(folding->body, &record, &why) < 0)
        return fold_refuse(folding, &why);
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
    struct fly_error why;
    double growth;

    if (record_read_epoch(folding->body, &record, &why) < 0)
        return fold_refuse(folding, &why);
    if (trial == NULL || record.attempt != trial->attempt)
        return 0;
    start_up_take(trial, &record, folding->event->time_us);
    trial->longest_s =
        fmax(trial->longest_s,
             fmax(record.time_s - trial->time_s, 1e-6 * (double)(folding->event->time_us - trial->sign_us)));
    note_sign(folding);
    trial->reported = true;
    data_growth_note(fold_line(folding), trial, data_growth_steps(trial, &record));
    growth = data_growth_of(fold_line(folding), trial, 0.0);
    trial->progress = job_trial_progress(&folding->state->definition, trial, record.epoch, record.metric);
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
                                       .energy_j = record.total_energy_j / growth,
                                       .time_s = record.total_time_s / growth};
    return fold_tell(folding, trial->line,
                     &(struct event){.kind = EVENT_EPOCH_REPORTED, .reported = &reported});
}

static int (*const folds[])(struct folding *folding) = {
    [RECORD_DEFINED] = fold_defined,   [RECORD_SET] = fold_set,
    [RECORD_PROPOSED] = fold_proposed, [RECORD_ATTEMPT] = fold_attempt,
    [RECORD_PROFILED] = fold_profiled, [RECORD_HEARTBEAT] = fold_heartbeat,
    [RECORD_EPOCH] = fold_epoch,       [RECORD_ENDED] = fold_ended,
    [RECORD_CLOSED] = fold_closed,     [RECORD_PROFILED_PART] = fold_profiled_part,
    [RECORD_BROUGHT] = fold_brought,
};
_Static_assert(sizeof folds / sizeof folds[0] == RECORD_KINDS, "one function for every kind");

int job_state_fold_body(struct job_state *state, const struct store_event *event, json_t *body,
                        const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    enum record_kind kind = record_kind_parse(event->kind);
    struct folding folding = {
        .state = state, .event = event, .body = body, .plugins = plugins, .error = out_error};
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
    folding.trial = job_state_trial(state, event->trial);
    code = folds[kind](&folding);
    if (code == 0) {
        state->number = event->number;
        state->last_us = event->time_us;
        job_lines_tell_left(state);
    }
    return code;
}

int job_state_fold(struct job_state *state, const struct store_event *event,
                   const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    json_t *body = NULL;
    int code;

    (void)record_parse(event, &body, NULL); /* a body that is no JSON is refused like any other */
    code = job_state_fold_body(state, event, body, plugins, out_error);
    json_decref(body);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Proposes what a trial is to run, and chooses from its profile. Each is one change. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/decide/decision_text.h"
#include "job/decide/line.h"
#include "job/local/job_local.h"
#include "policy/limit_plan.h"

/* ---- propose ---- */

/* Tells the points that need not be measured again, or the whole profile. */
static void tell_known(const struct job_line *line, size_t batch, struct job_proposal *proposal)
{
    const struct decider_profile *whole = &line->decider.profiles[batch];
    const struct profile_part *part = &line->parts[batch];
    double units = job_line_units(line, batch);

    if (units > 0.0)
        proposal->known_units_per_epoch = units;
    if (proposal->wants_profile) {
        proposal->known_count = part->count;
        for (size_t i = 0; i < part->count; i++)
            proposal->known[i] = part->points[i];
        return;
    }
    proposal->known_count = whole->count < JOB_KNOWN_MAX ? whole->count : JOB_KNOWN_MAX;
    for (size_t i = 0; i < proposal->known_count; i++)
        proposal->known[i] =
            whole->points[whole->count <= JOB_KNOWN_MAX ? i : i * (whole->count - 1) / (JOB_KNOWN_MAX - 1)];
}

/* The nearest profiled batch size, by ratio, that is not `told` and has a shape; batch_count: none. */
static size_t next_other(const struct job_line *line, size_t batch, const bool *told)
{
    size_t count = line->spec->batch_count, nearest = count;
    double size = line->spec->batches[batch].size, least = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double apart = fabs(log(line->spec->batches[i].size / size));

        if (i == batch || told[i] || line->decider.profiles[i].count < LIMIT_CURVE_LEAST || apart >= least)
            continue;
        nearest = i;
        least = apart;
    }
    return nearest;
}

static int compare_limits(const void *left, const void *right)
{
    const struct job_other_point *a = left, *b = right;

    return (a->limit_w > b->limit_w) - (a->limit_w < b->limit_w);
}

/* Tells the profiles of other batch sizes, as many as there is room for. */
static void tell_others(const struct job_line *line, size_t batch, struct job_proposal *proposal)
{
    bool told[JOB_BATCHES_MAX] = {false};
    size_t other;

    if (!proposal->wants_profile || isfinite(line->spec->objective->max_slowdown))
        return;
    for (int i = 0; i < LIMIT_CURVES_MAX; i++) {
        const struct decider_profile *profile;
        struct job_other_point *points = &proposal->others[proposal->other_count];

        other = next_other(line, batch, told);
        if (other == line->spec->batch_count)
            return;
        told[other] = true;
        profile = &line->decider.profiles[other];
        if (profile->count > JOB_OTHERS_MAX - proposal->other_count)
            continue;
        for (size_t k = 0; k < profile->count; k++)
            points[k] = (struct job_other_point){line->spec->batches[other].size, profile->points[k].limit_w,
                                                 profile->points[k].power_w, profile->points[k].time_s};
        qsort(points, profile->count, sizeof points[0], compare_limits);
        proposal->other_count += profile->count;
    }
}

/* The expected epochs, which depend on the batch size but not on the hardware. */
static double expect_epochs(const struct job_state *state, uint32_t batch_size)
{
    const struct fly_job_definition *definition = &state->definition;
    double epochs = 0.0, reached = 0.0;

    if (definition->target == FLY_TARGET_NONE || definition->trains_on)
        return definition->max_epochs;
    for (size_t i = 0; i < state->line_count; i++) {
        const struct job_line *line = &state->lines[i];
        size_t batch = job_line_batch(line, batch_size);

        if (batch == line->spec->batch_count)
            continue;
        epochs += (double)line->facts[batch].reached_epochs;
        reached += (double)line->facts[batch].reached;
    }
    return reached > 0.0 ? epochs / reached : NAN;
}

/* Tells a trial's attempt what the log says. */
static int tell_proposal(struct local_change *change, uint64_t trial, uint32_t attempt,
                         struct job_proposal *out_proposal, struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &change->state->definition;
    const struct job_line *line;
    struct trial_past past;
    size_t batch;
    int code = local_past(change, trial, attempt, &past, out_error);

    if (code < 0)
        return code;
    *out_proposal = (struct job_proposal){
        .trial = trial,
        .attempt = attempt,
        .recurrence = past.record.recurrence,
        .try_number = past.record.try_number,
        .last_try = past.record.last_try,
        .batch_size = past.record.batch_size,
        .local_batch_size = past.record.batch_size / change->state->lines[past.record.line].world_size,
        .limit_w = past.limit_w,
        .wants_profile = past.record.wants_profile && !past.profiled,
        .stops_at_target = definition->target != FLY_TARGET_NONE && !definition->trains_on,
        .epochs = past.epochs > 0 ? past.epochs : definition->max_epochs,
        .epochs_done = past.epochs_done,
        .energy_j = past.past_energy_j,
        .time_s = past.past_time_s,
        .reason = past.record.reason,
        .known_units_per_epoch = NAN,
        .expected_epochs = expect_epochs(change->state, past.record.batch_size),
    };
    snprintf(out_proposal->why, sizeof out_proposal->why, "%s", past.record.why);
    line = &change->state->lines[past.record.line];
    batch = job_line_batch(line, past.record.batch_size);
    if (batch < line->spec->batch_count) {
        tell_known(line, batch, out_proposal);
        tell_others(line, batch, out_proposal);
        out_proposal->untried = job_line_untried(line, batch);
    }
    trial_past_deinit(&past);
    return 0;
}

static int append_attempt(struct local_change *change, uint64_t trial, uint32_t attempt,
                          const struct job_question *question, struct fly_error *out_error)
{
    const struct job_caller *caller = change->caller; /* known, where the question only says a name */
    const struct attempt_record record = {.attempt = attempt,
                                          .user = caller != NULL ? caller->name : question->origin.user,
                                          .account = question->origin.account,
                                          .host = question->origin.host,
                                          .gpus = question->origin.gpus};
    char key[STORE_KEY_MAX + 1] = "";

    if (question->request != NULL && question->request[0] != '\0')
        snprintf(key, sizeof key, "request/%s", question->request);
    return local_append(change, RECORD_ATTEMPT, trial, key, &record, out_error);
}

/* The open trial of a run, newest first. What was run unasked does not continue one of another batch size. */
static struct job_trial *find_run(const struct job_state *state, const struct job_question *question)
{
    const char *run = question->run;

    for (size_t i = state->open_count; i-- > 0 && run != NULL && run[0] != '\0';) {
        struct job_trial *trial = &state->open[i];
        uint32_t batch_size = state->lines[trial->line].spec->batches[trial->batch].size;

        if (strcmp(trial->run, run) == 0 &&
            (question->ran_batch_size == 0 || question->ran_batch_size == batch_size))
            return trial;
    }
    return NULL;
}

static int append_refusal(struct local_change *change, uint64_t trial, struct fly_error *out_error)
{
    const struct ended_record record = {
        .outcome = TRIAL_REFUSED, .stop = JOB_STOP_COST, .attempt = 1, .metric = NAN};
    char key[STORE_KEY_MAX + 1];

    snprintf(key, sizeof key, "end/%" PRIu64, trial);
    return local_append(change, RECORD_ENDED, trial, key, &record, out_error);
}

/* Records how many recurrences are left, if a new one tells other than is known. */
static int announce(struct local_change *change, const struct job_question *question,
                    struct fly_error *out_error)
{
    const struct job_state *state = change->state;
    const struct job_setting setting = {
        .pin_limit_w = NAN, .set_recurrences_left = true, .recurrences_left = question->recurrences_left};

    if (question->recurrences_left == 0 ||
        job_state_recurrences_left(state) == (double)question->recurrences_left ||
        job_state_submission(state, decide_submission(question)) != NULL)
        return 0;
    return local_append(change, RECORD_SET, 0, "", &setting, out_error);
}

/* Decides until a trial may run; those that may not are recorded too. */
static int propose_new(struct local_change *change, const struct job_question *question, uint64_t *out_trial,
                       struct fly_error *out_error)
{
    struct decision decision = {.refused = true};
    int code = announce(change, question, out_error);

    if (code == 0)
        code = local_bring_hardware(change, &question->hardware, out_error);
    for (int i = 0; i < JOB_PROPOSALS_AT_ONCE && decision.refused && code == 0; i++) {
        code = decide_proposal(change->state, question, change->now_us, &decision, out_error);
        if (code < 0)
            break;
        *out_trial = change->state->trials + 1;
        decision.record.why = decision.why;
        decision.record.numbers =
            decision_reasons(change->state, &change->state->lines[decision.record.line]);
        code = local_append(change, RECORD_PROPOSED, *out_trial, "", &decision.record, out_error);
        json_decref(decision.record.numbers);
        if (code == 0 && decision.refused)
            code = append_refusal(change, *out_trial, out_error);
    }
    if (code == 0 && decision.refused)
        code = error_set(out_error, FLY_EEXHAUSTED,
                         "job '%s': %d trials in a row could not run one epoch below their bound; raise beta",
                         change->job, JOB_PROPOSALS_AT_ONCE);
    return code;
}

/* Whether that request was answered before: 1, 0 or an error. */
static int find_request(struct local_change *change, const struct job_question *question, uint64_t *out_trial,
                        uint32_t *out_attempt, struct fly_error *out_error)
{
    struct attempt_record record;
    char key[STORE_KEY_MAX + 1];
    json_t *body;
    int found;

    if (question->request == NULL || question->request[0] == '\0')
        return 0;
    snprintf(key, sizeof key, "request/%s", question->request);
    found = local_find(change, key, out_trial, &body, out_error);
    if (found != 1)
        return found;
    found = record_read(RECORD_ATTEMPT, body, NULL, &record, out_error);
    if (found == 0)
        *out_attempt = record.attempt;
    json_decref(body);
    return found < 0 ? found : 1;
}

struct propose_call {
    const struct job_question *question;
    struct job_proposal proposal; /* of the lost change, when asked again */
};

static int propose_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    struct propose_call *propose = call;
    const struct job_question *question = propose->question;
    const struct job_trial *running;
    uint64_t trial = 0;
    uint32_t attempt = 1;
    int code = local_lost_is_there(change, out_error);

    if (code == 1)
        return tell_proposal(change, propose->proposal.trial, propose->proposal.attempt, &propose->proposal,
                             out_error);
    if (code == 0)
        code = find_request(change, question, &trial, &attempt, out_error);
    if (code == 1) {
        code = tell_proposal(change, trial, attempt, &propose->proposal, out_error);
        propose->proposal.repeated = true;
        return code;
    }
    if (code == 0)
        code = local_expire(change, NULL, out_error);
    if (code < 0)
        return code;
    running = find_run(change->state, question);
    if (running != NULL) {
        trial = running->number;
        attempt = running->attempt + 1;
    } else {
        code = propose_new(change, question, &trial, out_error);
    }
    if (code == 0)
        code = append_attempt(change, trial, attempt, question, out_error);
    return code < 0 ? code : tell_proposal(change, trial, attempt, &propose->proposal, out_error);
}

int local_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                  struct fly_error *out_error)
{
    struct propose_call call = {.question = question};
    int code = call_check_question(question, out_error);

    if (code == 0)
        code = local_call(self, question->job, 0, false, propose_within, &call, out_error);
    if (code == 0)
        *out_proposal = call.proposal;
    return code;
}

/* ---- profile ---- */

static int repeat_profile(json_t *body, struct job_choice *out_choice, struct fly_error *out_error)
{
    static _Thread_local struct profiled_record record; /* too large for a stack */
    int code = record_read(RECORD_PROFILED, body, NULL, &record, out_error);

    json_decref(body);
    if (code < 0)
        return code;
    *out_choice = (struct job_choice){.limit_w = record.limit_w, .epochs = record.epochs, .repeated = true};
    if (out_choice->epochs == 0 && !record.refused)
        out_choice->epochs = JOB_EPOCHS_MAX;
    return 0;
}

static int append_profile(struct local_change *change, const struct job_profile *profile, const char *key,
                          struct job_choice *out_choice, struct fly_error *out_error)
{
    const struct job_trial *trial = job_state_trial(change->state, profile->trial);
    static _Thread_local struct profiled_record record; /* too large for a stack */
    int code;

    if (trial == NULL || !trial->wants_profile)
        return error_set(out_error, FLY_ESTATE, "job '%s': trial %" PRIu64 " %s", change->job, profile->trial,
                         trial == NULL ? "does not run" : "wants no profile");
    record =
        (struct profiled_record){.count = profile->point_count, .units_per_epoch = profile->units_per_epoch};
    memcpy(record.points, profile->points, profile->point_count * sizeof record.points[0]);
    code = decide_profile(change->state, trial, &record, out_error);
    if (code < 0)
        return code;
    *out_choice = (struct job_choice){
        .limit_w = record.limit_w,
        .epochs = record.epochs > 0 || record.refused ? record.epochs : change->state->definition.max_epochs};
    return local_append(change, RECORD_PROFILED, profile->trial, key, &record, out_error);
}

/* The trial may have ended: what it measured is worth as much. */
static int append_part(struct local_change *change, const struct job_profile *profile,
                       struct job_choice *out_choice, struct fly_error *out_error)
{
    static _Thread_local struct profiled_part_record record;
    const struct job_line *line;
    struct trial_past past;
    size_t batch;
    int code = local_past(change, profile->trial, 0, &past, out_error);

    if (code < 0)
        return code;
    line = &change->state->lines[past.record.line];
    batch = job_line_batch(line, past.record.batch_size);
    record = (struct profiled_part_record){
        .line = past.record.line, .batch_size = past.record.batch_size, .count = profile->point_count};
    *out_choice = (struct job_choice){
        .limit_w = NAN, .epochs = past.epochs > 0 ? past.epochs : change->state->definition.max_epochs};
    memcpy(record.points, profile->points, profile->point_count * sizeof record.points[0]);
    trial_past_deinit(&past);
    if (batch == line->spec->batch_count)
        return error_set(out_error, FLY_EDATA, "job '%s': trial %" PRIu64 " ran a batch size that is none",
                         change->job, profile->trial);
    out_choice->repeated = !decider_wants_profile(&line->decider, &(struct proposal){.batch = batch}) ||
                           profile_part_has(&line->parts[batch], record.points, record.count);
    if (out_choice->repeated)
        return 0;
    return local_append(change, RECORD_PROFILED_PART, profile->trial, "", &record, out_error);
}

struct profile_call {
    const struct job_profile *profile;
    struct job_choice choice;
};

static int profile_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    struct profile_call *asked = call;
    const struct job_profile *profile = asked->profile;
    struct job_choice *out_choice = &asked->choice;
    char key[STORE_KEY_MAX + 1];
    json_t *body;
    int found;

    if (profile->partial)
        return append_part(change, profile, out_choice, out_error);
    snprintf(key, sizeof key, "profile/%" PRIu64, profile->trial);
    found = local_find(change, key, NULL, &body, out_error);
    if (found < 0)
        return found;
    if (found == 1) {
        found = repeat_profile(body, out_choice, out_error);
        out_choice->epochs = out_choice->epochs < change->state->definition.max_epochs
                                 ? out_choice->epochs
                                 : change->state->definition.max_epochs;
        return found;
    }
    found = local_expire(change, NULL, out_error);
    return found < 0 ? found : append_profile(change, profile, key, out_choice, out_error);
}

int local_profile(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                  struct fly_error *out_error)
{
    struct profile_call call = {.profile = profile};
    int code = call_check_profile(profile, out_error);

    if (code == 0)
        code = local_call(self, profile->job, profile->trial, false, profile_within, &call, out_error);
    if (code == 0)
        *out_choice = call.choice;
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/decide.h"

#include <math.h>

#include "job/decide/data_growth.h"
#include "job/decide/decision_text.h"
#include "job/decide/line.h"
#include "job/decide/start_up.h"

enum { BOUND_EVIDENCE = 2 }; /* trials needed to show that a batch size is too slow */

static const double safety = 1.1; /* how much longer than its longest time so far the best choice may take */

/* ---- choosing ---- */

/* A choice while it is made. */
struct choosing {
    const struct job_state *state;
    const struct job_question *question;
    const struct job_line *line;
    const struct job_recurrence *recurrence; /* NULL: a new one */
    int64_t now_us;
    struct proposal proposal;
    struct proposed_record *record;
    uint32_t given_up; /* the batch size that must not run; 0: none */
    uint32_t crashing; /* the same, because it crashed in a row */
};

static void choose_best(struct choosing *choosing, enum reason reason)
{
    choosing->proposal = (struct proposal){.batch = job_line_best(choosing->line),
                                           .limit_rule = LIMIT_PROFILED,
                                           .reason = reason,
                                           .policy_version = choosing->state->policy->version};
    choosing->record->capped = false;
}

static bool choose_pinned(struct choosing *choosing)
{
    const struct job_state *state = choosing->state;
    const struct job_spec *spec = choosing->line->spec;
    size_t batch = 0;

    while (batch < choosing->line->excluded && spec->batches[batch].size != state->pin_batch_size)
        batch++;
    if (state->pin_batch_size == 0 || batch == choosing->line->excluded)
        return false;
    choosing->proposal =
        (struct proposal){.batch = batch,
                          .limit_rule = isnan(state->pin_limit_w) ? LIMIT_PROFILED : LIMIT_FIXED,
                          .limit_w = state->pin_limit_w,
                          .reason = REASON_PINNED};
    return true;
}

static bool choose_control(struct choosing *choosing)
{
    const struct job_state *state = choosing->state;
    const struct job_spec *spec = choosing->line->spec;

    if (state->control_every == 0 || choosing->record->recurrence % state->control_every != 0 ||
        choosing->record->try_number > 0 || !job_line_runs(choosing->line, spec->default_batch))
        return false;
    choosing->proposal =
        (struct proposal){.batch = spec->default_batch,
                          .limit_rule = LIMIT_FIXED,
                          .limit_w = batch_highest_limit_w(&spec->batches[spec->default_batch]),
                          .reason = REASON_CONTROL};
    return true;
}

static bool choose_without_target(struct choosing *choosing)
{
    if (choosing->state->definition.target != FLY_TARGET_NONE)
        return false;
    choosing->proposal = (struct proposal){.batch = choosing->line->spec->default_batch,
                                           .limit_rule = LIMIT_PROFILED,
                                           .reason = REASON_NO_TARGET};
    return choosing->proposal.batch < choosing->line->excluded;
}

/* Heeds the time by which a model must be ready: anything but the best known choice may run only so long. */
static void heed_deadline(struct choosing *choosing)
{
    const struct job_question *question = choosing->question;
    size_t best = job_line_best(choosing->line);
    double safe_s = safety * job_line_longest_s(choosing->line, best);
    double left_s = 1e-6 * (double)(question->finish_by_us - choosing->now_us);

    if (question->finish_by_us == 0)
        return;
    if (choosing->proposal.batch == best) {
        choosing->record->capped = false;
    } else if (!(left_s >= 2.0 * safe_s)) { /* also when nothing is known */
        choose_best(choosing, REASON_DEADLINE);
    } else {
        choosing->record->stop_by_us = question->finish_by_us - (int64_t)(1e6 * safe_s);
    }
}

static int choose_by_policy(struct choosing *choosing, struct fly_error *out_error)
{
    const struct job_line *line = choosing->line;
    const struct job_recurrence *recurrence = choosing->recurrence;
    bool begun = recurrence != NULL && recurrence->begun && &choosing->state->lines[recurrence->line] == line;
    int code = decider_propose(&line->decider, begun ? recurrence->line_number : line->recurrences,
                               begun ? recurrence->policy_tries : 0, &choosing->proposal, out_error);

    choosing->record->capped = !choosing->proposal.uncapped;
    if (code == FLY_EEXHAUSTED || code == FLY_EDATA) { /* a search that has ended, or a faulty plug-in */
        choose_best(choosing, REASON_NO_CHOICE);
        return 0;
    }
    if (code < 0)
        return code;
    if (choosing->proposal.batch >= line->excluded) {
        choose_best(choosing, REASON_MEMORY);
    } else if (line->facts[choosing->proposal.batch].worse) {
        choosing->given_up = line->spec->batches[choosing->proposal.batch].size;
        choose_best(choosing, REASON_QUALITY);
    } else if (decider_gave_up(&line->decider, choosing->proposal.batch)) {
        choosing->given_up = line->spec->batches[choosing->proposal.batch].size;
        choose_best(choosing, REASON_NO_CHOICE);
    } else if (!decider_chooses_pairs(&line->decider) &&
               line->facts[choosing->proposal.batch].reached >= BOUND_EVIDENCE &&
               !job_line_keeps_bound(line, choosing->proposal.batch)) {
        choose_best(choosing, REASON_BOUND);
    } else {
        heed_deadline(choosing);
    }
    return 0;
}

/* Chooses what has run already. */
static int choose_ran(struct choosing *choosing, struct fly_error *out_error)
{
    const struct job_question *question = choosing->question;
    const struct job_spec *spec = choosing->line->spec;
    size_t batch = 0;

    while (batch < spec->batch_count && spec->batches[batch].size != question->ran_batch_size)
        batch++;
    if (batch == spec->batch_count)
        return error_set(out_error, FLY_EUSAGE,
                         "batch size %u was run, and is none of the job's that %u ranks can share",
                         question->ran_batch_size, question->hardware.world_size);
    choosing->proposal =
        (struct proposal){.batch = batch, .limit_rule = LIMIT_PROFILED, .reason = REASON_UNASKED};
    return 0;
}

/*
 * A batch size that fits and has not crashed as often in a row: the nearest smaller one, which needs less
 * memory, else the nearest larger one; `batch` itself when there is none.
 */
static size_t another_to_try(const struct job_line *line, size_t batch)
{
    for (size_t i = batch; i-- > 0;) {
        if (job_line_runs(line, i) && !decider_keeps_crashing(&line->decider, i))
            return i;
    }
    for (size_t i = batch + 1; i < line->excluded; i++) {
        if (job_line_runs(line, i) && !decider_keeps_crashing(&line->decider, i))
            return i;
    }
    return batch;
}

static bool others_trained(const struct job_line *line, size_t batch)
{
    for (size_t i = 0; i < line->spec->batch_count; i++) {
        if (i != batch && line->facts[i].observed > 0)
            return true;
    }
    return false;
}

/* Leaves a batch size that crashes: if only that one runs, nobody sees whether others crash as well. */
static void leave_crashing(struct choosing *choosing)
{
    const struct batch_policy *policy = choosing->state->policy;
    const struct job_line *line = choosing->line;
    size_t batch = choosing->proposal.batch, other;

    if (policy == &batch_policy_default || policy == &batch_policy_fixed || batch >= line->excluded ||
        others_trained(line, batch) || !decider_keeps_crashing(&line->decider, batch))
        return;
    other = another_to_try(line, batch);
    if (other == batch)
        return;
    choose_best(choosing, REASON_NO_CHOICE);
    choosing->proposal.batch = other;
    choosing->given_up = 0;
    choosing->crashing = line->spec->batches[batch].size;
}

static int choose(struct choosing *choosing, struct fly_error *out_error)
{
    int code = 0;

    if (choosing->question->ran_batch_size != 0)
        return choose_ran(choosing, out_error);
    if (choose_pinned(choosing) || choose_control(choosing) || choose_without_target(choosing))
        return 0;
    choosing->record->counted = true;
    if (choosing->record->last_try)
        choose_best(choosing, REASON_LAST_TRY);
    else
        code = choose_by_policy(choosing, out_error);
    if (code == 0)
        leave_crashing(choosing);
    return code;
}

/* ---- the limit and the epochs ---- */

static void settle_limit(const struct choosing *choosing)
{
    const struct proposal *proposal = &choosing->proposal;
    struct proposed_record *record = choosing->record;

    record->limit_rule = proposal->limit_rule;
    record->limit_w = NAN;
    if (proposal->reason == REASON_UNASKED)
        record->limit_w = choosing->question->ran_limit_w;
    if (!choosing->line->limits_known || proposal->reason == REASON_UNASKED)
        return;
    record->wants_profile = decider_wants_profile(&choosing->line->decider, proposal);
    if (!record->wants_profile)
        record->limit_w = decider_limit_w(&choosing->line->decider, proposal);
}

static int settle_epochs(const struct choosing *choosing, bool *out_refused, struct fly_error *out_error)
{
    struct proposed_record *record = choosing->record;
    bool known;
    int code;

    if (!record->capped) {
        record->epochs = choosing->line->spec->max_epochs;
        return 0;
    }
    code = job_line_epochs(choosing->line, choosing->proposal.batch, record->limit_w, &known, &record->epochs,
                           out_error);
    if (code < 0)
        return code;
    if (!known)
        record->epochs = 0;
    else if (record->epochs == 0 && choosing->state->definition.one_at_a_time)
        *out_refused = true;
    else if (record->epochs == 0)
        record->epochs = 1; /* a trial that never ran would teach nothing */
    return 0;
}

const char *decide_submission(const struct job_question *question)
{
    if (question->submission != NULL && question->submission[0] != '\0')
        return question->submission;
    return question->run != NULL ? question->run : "";
}

static int find_line(struct job_state *state, const struct job_hardware *hardware, bool *out_new,
                     size_t *out_line, struct fly_error *out_error)
{
    *out_line = job_state_line(state, hardware);
    *out_new = *out_line == state->line_count || !state->lines[*out_line].described;
    return *out_line == state->line_count ? brought_add_line(state, hardware, out_error) : 0;
}

int decide_proposal(struct job_state *state, const struct job_question *question, int64_t now_us,
                    struct decision *out_decision, struct fly_error *out_error)
{
    struct proposed_record record = {.submission = decide_submission(question),
                                     .run = question->run != NULL ? question->run : "",
                                     .tries = question->tries,
                                     .hardware = question->hardware,
                                     .policy = state->policy->name,
                                     .policy_version = state->policy->version,
                                     .finish_by_us = question->finish_by_us,
                                     .heartbeat_s = question->heartbeat_s};
    struct choosing choosing = {.state = state, .question = question, .now_us = now_us, .record = &record};
    bool refused = false;
    int code = find_line(state, &question->hardware, &record.new_line, &record.line, out_error);

    if (code < 0)
        return code;
    choosing.line = &state->lines[record.line];
    record.guarded = choosing.line->decider.guarded;
    choosing.recurrence = job_state_submission(state, record.submission);
    record.recurrence = choosing.recurrence != NULL ? choosing.recurrence->number : state->recurrences;
    record.try_number = choosing.recurrence != NULL ? choosing.recurrence->tries : 0;
    record.last_try = question->tries > 0 && record.try_number + 1 >= question->tries;
    code = choose(&choosing, out_error);
    if (code < 0)
        return code;
    record.batch_size = choosing.line->spec->batches[choosing.proposal.batch].size;
    record.reason = choosing.proposal.reason;
    record.random = state->definition.generator == GENERATOR_NUMPY && record.reason == REASON_SAMPLED;
    record.random_after = choosing.proposal.random_after;
    settle_limit(&choosing);
    code = settle_epochs(&choosing, &refused, out_error);
    if (code < 0)
        return code;
    *out_decision = (struct decision){.record = record,
                                      .batch = choosing.proposal.batch,
                                      .refused = refused,
                                      .given_up = choosing.given_up,
                                      .crashing = choosing.crashing};
    decision_explain(state, out_decision);
    out_decision->record.why = out_decision->why;
    return 0;
}

/* ---- while it runs ---- */

int decide_profile(const struct job_state *state, const struct job_trial *trial,
                   struct profiled_record *record, struct fly_error *out_error)
{
    const struct job_line *line = &state->lines[trial->line];
    const struct proposal proposal = {.batch = trial->batch, .limit_rule = LIMIT_PROFILED};
    const struct profile_measured measured = {.batch = trial->batch,
                                              .points = record->points,
                                              .count = record->count,
                                              .units_per_epoch =
                                                  data_growth_units(line, trial, record->units_per_epoch)};
    uint32_t epochs = state->definition.max_epochs;
    bool known = false;
    size_t best;
    int code = decider_choose(&line->decider, &measured, &best, out_error);

    if (code < 0)
        return code;
    record->folded = decider_wants_profile(&line->decider, &proposal);
    record->limit_w =
        record->folded ? record->points[best].limit_w : decider_limit_w(&line->decider, &proposal);
    if (trial->capped && record->folded && record->units_per_epoch > 0.0) {
        known = true;
        code = decider_measured_cap(&line->decider, &measured, best, measured.units_per_epoch, &epochs,
                                    out_error);
    } else if (trial->capped && !record->folded) {
        code = job_line_epochs(line, trial->batch, record->limit_w, &known, &epochs, out_error);
    }
    record->refused = known && epochs == 0 && trial->epochs_done == 0;
    record->epochs = !trial->capped ? epochs : known ? epochs + (epochs == 0 && !record->refused) : 0;
    return code;
}

/*
 * Sets the epochs by what those so far took, when nothing else was known before. A first report alone does
 * not tell what an epoch takes.
 */
static int epochs_by_average(const struct job_line *line, const struct job_trial *after, double growth,
                             const struct epoch_record *record, uint32_t *out_epochs,
                             struct fly_error *out_error)
{
    const struct trial_parts parts =
        start_up_parts(after, growth, record->epoch, record->total_energy_j, record->total_time_s);
    struct epoch_question question = {.batch = after->batch,
                                      .epoch_energy_j = parts.epoch_energy_j,
                                      .epoch_time_s = parts.epoch_time_s,
                                      .apart_energy_j = parts.apart_energy_j,
                                      .apart_time_s = parts.apart_time_s};

    return parts.known ? decider_cap(&line->decider, &question, out_epochs, out_error) : 0;
}

/* Whether one more epoch could take the time that the next try needs. */
static bool runs_late(const struct job_trial *after, int64_t now_us)
{
    return after->stop_by_us > 0 && now_us + (int64_t)(1e6 * after->longest_epoch_s) > after->stop_by_us;
}

int decide_report(const struct job_state *state, const struct job_trial *trial, int64_t now_us,
                  struct epoch_record *record, struct fly_error *out_error)
{
    static const struct {
        enum job_answer answer;
        enum job_stop stop;
    } answers[] = {[VERDICT_GO_ON] = {JOB_GO_ON, JOB_STOP_NONE},
                   [VERDICT_REACHED] = {JOB_REACHED, JOB_STOP_TARGET},
                   [VERDICT_EPOCHS] = {JOB_STOP, JOB_STOP_EPOCHS},
                   [VERDICT_COST] = {JOB_STOP, JOB_STOP_COST}};
    const struct job_line *line = &state->lines[trial->line];
    const struct target_progress progress =
        job_trial_progress(&state->definition, trial, record->epoch, record->metric);
    const double growth = data_growth_of(line, trial, data_growth_steps(trial, record));
    const struct epoch_reported reported = {.trial = trial->index,
                                            .batch = trial->batch,
                                            .epoch = record->epoch,
                                            .metric = record->metric,
                                            .reached = target_reached(&state->definition, &progress),
                                            .energy_j = record->total_energy_j / growth,
                                            .time_s = record->total_time_s / growth};
    struct progress_question question = {&reported, trial->epochs, trial->capped};
    struct job_trial after = *trial;
    enum verdict verdict;
    int code = 0;

    start_up_take(&after, record, now_us);
    if (trial->decided) {
        verdict = record->epoch >= state->definition.max_epochs ? VERDICT_EPOCHS : VERDICT_GO_ON;
        question.epochs = state->definition.max_epochs;
    } else {
        question.epochs = trial->epochs > 0 ? trial->epochs : state->definition.max_epochs;
        if (trial->epochs == 0 && !isnan(record->total_energy_j))
            code = epochs_by_average(line, &after, growth, record, &question.epochs, out_error);
        if (code < 0)
            return code;
        verdict = decider_judge(&line->decider, &question);
    }
    if (record->afterwards && verdict == VERDICT_COST)
        verdict = VERDICT_GO_ON;
    record->answer = answers[verdict].answer;
    record->stop = answers[verdict].stop;
    record->epochs = question.epochs;
    if (verdict == VERDICT_GO_ON && !trial->decided && !record->afterwards && runs_late(&after, now_us)) {
        record->answer = JOB_STOP;
        record->stop = JOB_STOP_DEADLINE;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds a job's events into its state, one function each. They return 0, a negative code, or JOB_FOLD_ANEW.
 * An event of a trial that is not open (any more) changes nothing of that trial.
 */
#include "job/decide/state_fold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/definition.h"
#include "job/core/job_words.h"
#include "job/decide/data_growth.h"
#include "job/decide/line.h"
#include "job/decide/start_up.h"
#include "model/objective_check.h"
#include "policy/crash_streaks.h"

/* One event while it is folded. */
struct folding {
    struct job_state *state;
    const struct store_event *event;
    struct job_trial *trial; /* the event's, if it is open */
    const struct batch_policy *const *plugins;
    struct fly_error *error;
};

/* Returns FLY_EDATA with the member that is wrong. */
static int fold_refuse_member(const struct folding *folding, const char *name, const char *expected)
{
    return error_set(folding->error, FLY_EDATA, "event %" PRIu64 " ('%s'): member '%s': expected %s",
                     folding->event->number, folding->event->kind, name, expected);
}

/* The line of the event's trial, which must be open. */
static struct job_line *fold_line(const struct folding *folding)
{
    return &folding->state->lines[folding->trial->line];
}

/* Tells the event to the decider of that line. */
static int fold_tell(const struct folding *folding, size_t line, const struct event *event)
{
    return decider_fold(&folding->state->lines[line].decider, event, folding->error);
}

/* An expired trial that gives a sign of life is no longer silent. */
static void fold_heard_of(const struct folding *folding)
{
    fold_line(folding)->facts[folding->trial->batch].silent -= folding->trial->silent;
    folding->trial->silent = false;
}

/* ---- the job ---- */

static void take_owners(struct job_state *state, const char *owners)
{
    if (owners == NULL || owners[0] == '\0')
        return;
    snprintf(state->owners, sizeof state->owners, "%s", strcmp(owners, JOB_OWNERS_NONE) != 0 ? owners : "");
}

static int on_defined(void *fold, const struct log_event *at)
{
    struct folding *folding = fold;
    struct fly_job_definition definition = {0};
    struct fly_error why = {.text = ""};
    const char *owners = "";
    int code = definition_from_json(at->body, &folding->state->arena, &definition, &why);

    if (code == 0)
        code = record_read_owners(at->body, &owners, &why);
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

static int on_set(void *fold, const struct log_event *at, const struct job_setting *setting)
{
    struct folding *folding = fold;
    struct job_state *state = folding->state;
    bool anew;

    if (setting->set_control_every)
        state->control_every = setting->control_every;
    if (setting->set_pin) {
        state->pin_batch_size = setting->pin_batch_size;
        state->pin_limit_w = setting->pin_limit_w;
    }
    if (setting->set_recurrences_left)
        state->recurrences_end =
            setting->recurrences_left > 0 ? state->recurrences + setting->recurrences_left : 0;
    take_owners(state, setting->owners);
    anew = take_policy(folding, setting);
    if (!setting->set_objective || at->event->number <= state->objective_from)
        return anew ? fold_anew(state) : 0;
    if (objective_check(&setting->objective, 1.0, NULL) < 0 ||
        definition_allows(&state->definition, &setting->objective, NULL) < 0)
        return fold_refuse_member(folding, "objective", "an objective in its range");
    /* What was observed has other costs under the new objective. */
    state->objective = setting->objective;
    state->objective_from = at->event->number;
    return fold_anew(state);
}

/* ---- a trial begins ---- */

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

static int on_proposed(void *fold, const struct log_event *at, const struct proposed_record *record)
{
    struct folding *folding = fold;
    struct job_state *state = folding->state;
    struct job_recurrence *recurrence;
    struct job_trial trial;
    int code = 0;

    if (at->event->trial != state->trials + 1)
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

static int on_attempt(void *fold, const struct log_event *at, const struct attempt_record *attempt)
{
    struct folding *folding = fold;
    struct job_trial *trial = folding->trial;

    if (trial == NULL)
        return 0;
    start_up_next_attempt(trial);
    trial->past_energy_j += trial->energy_j;
    trial->past_time_s += trial->time_s;
    trial->energy_j = trial->time_s = 0.0;
    trial->attempt = attempt->attempt;
    fold_heard_of(folding);
    trial->reported = false;
    trial->longest_s = 0.0;
    trial->sign_us = at->event->time_us;
    return 0;
}

static int on_profiled(void *fold, const struct log_event *at, const struct profiled_record *profiled)
{
    struct folding *folding = fold;
    struct job_trial *trial = folding->trial;
    double units;
    int code = 0;

    (void)at;
    if (trial == NULL)
        return 0;
    units = data_growth_units(fold_line(folding), trial, profiled->units_per_epoch);
    if (profiled->folded) {
        const struct profile_measured measured = {.batch = trial->batch,
                                                  .points = profiled->points,
                                                  .count = profiled->count,
                                                  .units_per_epoch = units};

        code = fold_tell(folding, trial->line,
                         &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured});
    }
    if (code == 0 && profiled->folded) {
        fold_line(folding)->facts[trial->batch].units_per_epoch = units;
        fold_line(folding)->parts[trial->batch].count = 0;
    }
    trial->wants_profile = false;
    trial->limit_w = profiled->limit_w;
    trial->epochs = profiled->epochs;
    return code;
}

static int on_profiled_part(void *fold, const struct log_event *at, const struct profiled_part_record *part)
{
    struct folding *folding = fold;
    struct job_line *line =
        part->line < folding->state->line_count ? &folding->state->lines[part->line] : NULL;
    size_t batch = line != NULL ? job_line_batch(line, part->batch_size) : 0;

    if (line == NULL || batch == line->spec->batch_count)
        return fold_refuse_member(folding, "line, batch_size", "one that is known");
    return profile_part_take(&line->parts[batch], &line->arena, part->points, part->count, at->error);
}

/* ---- it runs ---- */

static void note_sign(const struct folding *folding)
{
    int64_t now_us = folding->event->time_us;

    fold_heard_of(folding);
    if (now_us > folding->trial->sign_us)
        folding->trial->sign_us = now_us;
}

static int on_heartbeat(void *fold, const struct log_event *at, const struct heartbeat_record *heartbeat)
{
    struct folding *folding = fold;
    struct job_trial *trial = folding->trial;

    (void)at;
    if (trial == NULL || heartbeat->attempt != trial->attempt)
        return 0;
    note_sign(folding);
    if (isfinite(heartbeat->energy_j) && isfinite(heartbeat->time_s)) {
        trial->energy_j = fmax(trial->energy_j, heartbeat->energy_j);
        trial->time_s = fmax(trial->time_s, heartbeat->time_s);
    }
    return 0;
}

static int on_epoch(void *fold, const struct log_event *at, const struct epoch_record *epoch)
{
    struct folding *folding = fold;
    struct job_trial *trial = folding->trial;
    struct epoch_reported reported;
    double growth;

    if (trial == NULL || epoch->attempt != trial->attempt)
        return 0;
    start_up_take(trial, epoch, at->event->time_us);
    trial->longest_s = fmax(trial->longest_s, fmax(epoch->time_s - trial->time_s,
                                                   1e-6 * (double)(at->event->time_us - trial->sign_us)));
    note_sign(folding);
    trial->reported = true;
    data_growth_note(fold_line(folding), trial, data_growth_steps(trial, epoch));
    growth = data_growth_of(fold_line(folding), trial, 0.0);
    trial->progress = job_trial_progress(&folding->state->definition, trial, epoch->epoch, epoch->metric);
    trial->epochs_done = epoch->epoch;
    trial->metric = epoch->metric;
    if (!isnan(epoch->reference_per_kwh))
        trial->reference_per_kwh = epoch->reference_per_kwh;
    trial->energy_j = epoch->energy_j;
    trial->time_s = epoch->time_s;
    if (!trial->counted || isnan(epoch->total_energy_j))
        return 0;
    reported = (struct epoch_reported){.trial = trial->index,
                                       .batch = trial->batch,
                                       .epoch = epoch->epoch,
                                       .metric = epoch->metric,
                                       .reached = epoch->stop == JOB_STOP_TARGET,
                                       .energy_j = epoch->total_energy_j / growth,
                                       .time_s = epoch->total_time_s / growth};
    return fold_tell(folding, trial->line,
                     &(struct event){.kind = EVENT_EPOCH_REPORTED, .reported = &reported});
}

/* ---- it ends ---- */

/* A trial that had to make room for another try tells nothing about its batch size. */
static enum trial_outcome learned(const struct ended_record *record)
{
    return record->stop == JOB_STOP_DEADLINE ? TRIAL_CRASHED : record->outcome;
}

/* Whether the program ended its training before all epochs were done: no report ended the trial. */
static bool ended_by_itself(const struct job_state *state, const struct ended_record *record)
{
    return record->outcome == TRIAL_NOT_REACHED && record->stop == JOB_STOP_NONE &&
           record->epochs < state->definition.max_epochs;
}

/* Outcomes that no policy can price are told to the policy as such a trial too. */
static enum trial_outcome told(const struct job_state *state, const struct ended_record *record)
{
    enum trial_outcome outcome = ended_by_itself(state, record) ? TRIAL_STOPPED : learned(record);

    return outcome_observed(outcome) && isnan(record->energy_j) ? TRIAL_CRASHED : outcome;
}

/* Whether a batch size ended so often without a step, while others train, that it is given up. */
static bool never_starts(const struct job_line *line, size_t batch)
{
    return line->facts[batch].unstarted >= CRASH_STREAK_LEAST && job_line_untried(line, batch);
}

static int tell_end(const struct folding *folding, const struct ended_record *record)
{
    const struct job_trial *trial = folding->trial;
    const struct job_line *line = fold_line(folding);
    const struct job_recurrence *recurrence = job_state_recurrence(folding->state, trial->recurrence);
    const double growth = data_growth_of(line, trial, 0.0);
    const struct trial_parts parts =
        record->epochs > 0 && !isnan(record->energy_j)
            ? start_up_parts(trial, growth, record->epochs, record->energy_j, record->time_s)
            : (struct trial_parts){.known = false};
    const struct fly_trial ended = {
        .trial = trial->index,
        .late = trial->lost,
        .recurrence = recurrence != NULL ? recurrence->line_number : trial->recurrence,
        .try_number = trial->try_number,
        .batch = trial->batch,
        .limit_w = isnan(trial->limit_w) ? batch_highest_limit_w(&line->spec->batches[trial->batch])
                                         : trial->limit_w,
        .outcome = told(folding->state, record),
        .epochs = record->epochs,
        .crashed =
            record->outcome == TRIAL_CRASHED && (!record->nothing_learnt || never_starts(line, trial->batch)),
        .nothing_learnt = record->nothing_learnt,
        .by_itself = ended_by_itself(folding->state, record),
        .energy_j = record->energy_j / growth,
        .time_s = record->time_s / growth,
        .apart_energy_j = parts.apart_energy_j,
        .apart_time_s = parts.apart_time_s,
        .dearer = trial->wants_profile ? job_line_dearer(line, trial->batch) : 0.0};

    if (trial->of_past)
        return 0;
    return fold_tell(
        folding, trial->line,
        &(struct event){.kind = trial->counted ? EVENT_TRIAL_ENDED : EVENT_TRIAL_SEEN, .ended = &ended});
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
    fold_line(folding)->facts[trial->batch].silent += !trial->silent;
    trial->lost = trial->silent = true;
    job_state_forget_silent(folding->state);
    return code;
}

static void observe(const struct folding *folding, const struct ended_record *record)
{
    const struct job_trial *trial = folding->trial;
    double growth = data_growth_of(fold_line(folding), trial, 0.0);
    struct past_tally *tally = &fold_line(folding)->facts[trial->batch].tally;

    if (trial->of_past)
        return;
    past_tally_take(tally, learned(record), record->epochs, folding->state->definition.max_epochs);
    if (outcome_observed(learned(record)))
        job_line_observe(fold_line(folding),
                         &(struct line_observation){.batch = trial->batch,
                                                    .limit_w = trial->limit_w,
                                                    .profiled = trial->profiles,
                                                    .reached = record->outcome == TRIAL_REACHED,
                                                    .epochs = record->epochs,
                                                    .energy_j = record->energy_j / growth,
                                                    .time_s = record->time_s / growth});
}

/* Cuts between characters, so that the text stays UTF-8. */
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
    struct batch_facts *facts = &fold_line(folding)->facts[folding->trial->batch];

    static const char without_step[] = JOB_END_WITHOUT_STEP ": ";
    size_t known = sizeof without_step - 1;

    facts->crashed += !record->nothing_learnt;
    if (strncmp(record->text, without_step, known) != 0)
        known = 0;
    copy_text(facts->crash_text, sizeof facts->crash_text, record->text + known);
}

static int note_overflow(const struct folding *folding)
{
    struct job_line *line = fold_line(folding);
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

/* A training that is over tells how good its model is, whatever it cost. */
static int take_final(const struct folding *folding)
{
    const struct job_trial *trial = folding->trial;
    double metric = target_counted(&folding->state->definition, &trial->progress, trial->metric);

    return job_line_take_final(folding->state, fold_line(folding), trial->batch, metric, folding->error);
}

/* The recurrence goes on as if the try had not been, or does not begin. */
static void take_back_try(const struct folding *folding, struct job_recurrence *recurrence)
{
    struct job_state *state = folding->state;
    const struct job_trial *trial = folding->trial;
    struct job_line *line = fold_line(folding);

    if (recurrence == NULL || recurrence->tries != trial->try_number + 1)
        return;
    recurrence->tries--;
    if (trial->counted && recurrence->policy_tries > 0)
        recurrence->policy_tries--;
    if (recurrence->tries > 0)
        return;
    if (recurrence->begun && line->recurrences == recurrence->line_number + 1)
        line->recurrences--;
    if (state->recurrences == recurrence->number + 1)
        state->recurrences--;
    else if (state->recurrences_end > 0)
        state->recurrences_end++;
    job_state_finish(state, recurrence);
}

static int on_ended(void *fold, const struct log_event *at, const struct ended_record *record)
{
    struct folding *folding = fold;
    struct job_state *state = folding->state;
    struct job_trial *trial = folding->trial;
    struct job_recurrence *recurrence;
    struct batch_facts *facts;
    int code;

    (void)at;
    if (trial == NULL)
        return 0;
    note_reference(state, record->reference_per_kwh);
    if (record->outcome == TRIAL_EXPIRED)
        return fold_expiry(folding, record);
    if (trial->decided)
        return fold_refuse_member(folding, "trial", "one whose end is not known");
    facts = &fold_line(folding)->facts[trial->batch];
    facts->unstarted = record->nothing_learnt ? facts->unstarted + 1 : 0;
    code = tell_end(folding, record);
    observe(folding, record);
    fold_heard_of(folding);
    if (record->outcome == TRIAL_CRASHED)
        note_crash(folding, record);
    if (code == 0 && record->outcome == TRIAL_OUT_OF_MEMORY)
        code = note_overflow(folding);
    if (code == 0 && record->outcome == TRIAL_NOT_REACHED && record->stop == JOB_STOP_EPOCHS)
        code = take_final(folding);
    recurrence = job_state_recurrence(state, trial->recurrence);
    if (record->outcome == TRIAL_REACHED && recurrence != NULL)
        job_state_finish(state, recurrence);
    else if (record->nothing_learnt && !job_line_untried(fold_line(folding), trial->batch))
        take_back_try(folding, recurrence);
    if (record->stop == JOB_STOP_TARGET && state->definition.trains_on) {
        trial->decided = true;
        trial->decided_energy_j = record->energy_j;
        trial->decided_time_s = record->time_s;
    } else {
        job_state_shut(state, trial);
    }
    return code;
}

static int on_closed(void *fold, const struct log_event *at, const struct closed_record *closed)
{
    struct folding *folding = fold;
    const struct job_trial *trial = folding->trial;
    int code = 0;

    (void)at;
    note_reference(folding->state, closed->reference_per_kwh);
    if (trial == NULL || !trial->decided)
        return 0;
    /* With a text its end was no ordinary one. */
    if (closed->text[0] == '\0' || trial->epochs_done >= folding->state->definition.max_epochs)
        code = take_final(folding);
    job_state_shut(folding->state, trial);
    return code;
}

/* ---- from elsewhere ---- */

/* Whether the policy could be told it: each batch size once, and figures that trials could have shown. */
static bool is_possible(const struct brought_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct past_tally tally = brought_tally(&record->batches[i]);

        if (!past_tally_possible(&tally) ||
            (i > 0 && record->batches[i].batch_size <= record->batches[i - 1].batch_size))
            return false;
    }
    return true;
}

static int take_hardware(struct folding *folding, const struct brought_record *record)
{
    struct job_state *state = folding->state;
    int code = 0;

    if (!record->of_line || record->line > state->line_count)
        return fold_refuse_member(folding, "line", "one that is known, or the next");
    if (record->line == state->line_count)
        code = job_state_add_line(state, &record->hardware, folding->error);
    return code < 0 ? code : brought_tell(&state->lines[record->line], record, folding->error);
}

/* Learning begins anew; trials that run show nothing of the revision that holds from now on. */
static int begin_revision(struct folding *folding, const struct brought_record *record)
{
    struct job_state *state = folding->state;
    int code = 0;

    snprintf(state->revision, sizeof state->revision, "%s", record->revision);
    for (size_t i = 0; i < state->open_count; i++) {
        state->open[i].of_past = true;
        state->open[i].counted = false;
    }
    for (size_t i = 0; i < state->unfinished_count; i++)
        state->unfinished[i].begun = false;
    for (size_t i = 0; i < state->line_count && code == 0; i++)
        code = job_line_renew(state, &state->lines[i], folding->error);
    return code;
}

static int on_brought(void *fold, const struct log_event *at, const struct brought_record *record)
{
    struct folding *folding = fold;
    struct job_state *state = folding->state;
    int code = 0;

    if (!is_possible(record))
        return fold_refuse_member(folding, "batches", "ascending sizes with figures of trials");
    if (record->kind == PAST_HARDWARE)
        return take_hardware(folding, record);
    if (record->kind == PAST_REVISION)
        code = begin_revision(folding, record);
    if (code == 0)
        code = brought_keep(state, record, at->error);
    for (size_t i = 0; i < state->line_count && code == 0; i++)
        code = brought_tell(&state->lines[i], record, folding->error);
    return code;
}

/* ---- the log ---- */

static const struct log_visitor visitor = {.knows_all = true,
                                           .on_defined = on_defined,
                                           .on_set = on_set,
                                           .on_proposed = on_proposed,
                                           .on_attempt = on_attempt,
                                           .on_profiled = on_profiled,
                                           .on_profiled_part = on_profiled_part,
                                           .on_heartbeat = on_heartbeat,
                                           .on_epoch = on_epoch,
                                           .on_ended = on_ended,
                                           .on_closed = on_closed,
                                           .on_brought = on_brought};

int job_state_fold_body(struct job_state *state, const struct store_event *event, json_t *body,
                        const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    enum record_kind kind = record_kind_parse(event->kind);
    struct folding folding = {.state = state, .event = event, .plugins = plugins, .error = out_error};
    int code;

    if (kind != RECORD_KINDS &&
        (event->number != state->number + 1 || (kind == RECORD_DEFINED) == state->defined))
        return error_set(out_error, FLY_EDATA,
                         "event %" PRIu64 " ('%s') is out of order after event %" PRIu64
                         "; a log begins with its definition",
                         event->number, event->kind, state->number);
    folding.trial = job_state_trial(state, event->trial);
    code = log_tell(&visitor, &folding, event, body, out_error);
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
    return job_state_fold_body(state, event, NULL, plugins, out_error);
}

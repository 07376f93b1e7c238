/* SPDX-License-Identifier: Apache-2.0 */
/* Folds the end of a trial: what its policy learns, and what is known of its batch size from then on. */
#include "job/decide/state_fold_end.h"

#include <math.h>
#include <string.h>

#include "job/decide/data_growth.h"
#include "job/decide/line.h"
#include "job/decide/start_up.h"
#include "policy/crash_streaks.h"

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
    const struct trial_ended ended = {
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

int fold_ended(struct folding *folding)
{
    struct job_state *state = folding->state;
    struct job_trial *trial = folding->trial;
    struct job_recurrence *recurrence;
    struct batch_facts *facts;
    struct ended_record record;
    struct fly_error why;
    int code;

    if (record_read_ended(folding->body, &record, &why) < 0)
        return fold_refuse(folding, &why);
    if (trial == NULL)
        return 0;
    note_reference(state, record.reference_per_kwh);
    if (record.outcome == TRIAL_EXPIRED)
        return fold_expiry(folding, &record);
    if (trial->decided)
        return fold_refuse_member(folding, "trial", "one whose end is not known");
    facts = &fold_line(folding)->facts[trial->batch];
    facts->unstarted = record.nothing_learnt ? facts->unstarted + 1 : 0;
    code = tell_end(folding, &record);
    observe(folding, &record);
    fold_heard_of(folding);
    if (record.outcome == TRIAL_CRASHED)
        note_crash(folding, &record);
    if (code == 0 && record.outcome == TRIAL_OUT_OF_MEMORY)
        code = note_overflow(folding);
    if (code == 0 && record.outcome == TRIAL_NOT_REACHED && record.stop == JOB_STOP_EPOCHS)
        code = take_final(folding);
    recurrence = job_state_recurrence(state, trial->recurrence);
    if (record.outcome == TRIAL_REACHED && recurrence != NULL)
        job_state_finish(state, recurrence);
    else if (record.nothing_learnt && !job_line_untried(fold_line(folding), trial->batch))
        take_back_try(folding, recurrence);
    if (record.stop == JOB_STOP_TARGET && state->definition.trains_on) {
        trial->decided = true;
        trial->decided_energy_j = record.energy_j;
        trial->decided_time_s = record.time_s;
    } else {
        job_state_shut(state, trial);
    }
    return code;
}

int fold_closed(struct folding *folding)
{
    const struct job_trial *trial = folding->trial;
    struct closed_record record;
    struct fly_error why;
    int code = 0;

    if (record_read_closed(folding->body, &record, &why) < 0)
        return fold_refuse(folding, &why);
    note_reference(folding->state, record.reference_per_kwh);
    if (trial == NULL || !trial->decided)
        return 0;
    /* With a text its end was no ordinary one. */
    if (record.text[0] == '\0' || trial->epochs_done >= folding->state->definition.max_epochs)
        code = take_final(folding);
    job_state_shut(folding->state, trial);
    return code;
}

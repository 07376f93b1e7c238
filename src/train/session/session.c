/* SPDX-License-Identifier: Apache-2.0 */
/* What a training calls on its session. */
#include "train/session/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fork_guard.h"

/* How long a training is too young for an energy, and how often it is looked for then. */
static const double young_s = 2.0, look_s = 0.02;
enum { LOOKS = 15 };

/* For answers that decide what becomes of a try, when its program has ended. */
static const double settle_most_s = 0.3;

static const char no_energy[] =
    "the energy of the GPUs is not known: what this training costs is not learnt, its "
    "metric and time are; 'flyball doctor' says why";

static const char *const answer_names[] = {"go on", "reached", "stop"};
_Static_assert(sizeof answer_names / sizeof answer_names[0] == FLY_STOP + 1, "a name for each");

const char *fly_answer_name(enum fly_answer answer)
{
    return (unsigned)answer <= FLY_STOP ? answer_names[answer] : "unknown";
}

static bool is_copy(const struct fly_session *session)
{
    return session->forks != fork_generation();
}

uint32_t fly_session_batch_size(const struct fly_session *session)
{
    return session->proposal.batch_size;
}

uint32_t fly_session_local_batch_size(const struct fly_session *session)
{
    return session->proposal.local_batch_size;
}

double fly_learning_rate(double rate, uint32_t suited_batch_size, uint32_t batch_size,
                         enum fly_scaling scaling)
{
    double factor = (double)batch_size / (double)suited_batch_size;

    return rate * (scaling == FLY_SCALE_SQUARE_ROOT ? sqrt(factor) : factor);
}

double fly_session_learning_rate(const struct fly_session *session, double default_rate,
                                 enum fly_scaling scaling)
{
    return fly_learning_rate(default_rate, session->definition.default_batch_size,
                             session->proposal.batch_size, scaling);
}

void fly_session_resumed(struct fly_session *session, uint32_t epochs_done)
{
    if (!session->reported)
        session->epoch = session->epoch_newest = epochs_done;
    session->resumed |= !session->reported;
}

void fly_session_epoch_begin(struct fly_session *session)
{
    if (session->disabled || is_copy(session))
        return;
    session->epoch_open = true;
    limit_epoch_begin(session);
}

enum fly_answer fly_session_step_begin(struct fly_session *session)
{
    if (session->disabled || is_copy(session))
        return FLY_GO_ON;
    if (!session->epoch_open)
        fly_session_epoch_begin(session);
    limit_step(session);
    if (!session->limit.refused)
        return FLY_GO_ON;
    session->answer = FLY_STOP;
    session->stop = JOB_STOP_COST;
    return FLY_STOP;
}

void fly_session_evaluation_begin(struct fly_session *session)
{
    if (session->disabled || is_copy(session) || !session->epoch_open)
        return;
    session->epoch_open = false;
    limit_epoch_end(session);
}

/* What follows needs no window of its own: energy and time count on until the report. */
void fly_session_evaluation_end(struct fly_session *session)
{
    fly_session_evaluation_begin(session);
}

static bool meets_target(const struct job_definition *job, double metric)
{
    switch (job->target) {
    case JOB_AT_LEAST:
        return metric >= job->target_metric;
    case JOB_AT_MOST:
        return metric <= job->target_metric;
    case JOB_NO_TARGET:
        break;
    }
    return false;
}

/* By the target and what was known before, where the log does not say. */
static enum fly_answer answer_alone(struct fly_session *session, double metric)
{
    session->reached |= meets_target(&session->definition, metric);
    if (session->reached && session->proposal.stops_at_target) {
        session->stop = JOB_STOP_TARGET;
        return FLY_REACHED;
    }
    if (session->epoch >= (session->reached ? session->definition.max_epochs : session->epochs)) {
        session->stop = session->epoch >= session->definition.max_epochs ? JOB_STOP_EPOCHS : JOB_STOP_COST;
        return FLY_STOP;
    }
    return session->reached ? FLY_REACHED : FLY_GO_ON;
}

/*
 * Joules up to now. A training that just began may be too short for a figure; a report
 * without one is worth nothing, so it waits, for as long as a board's counter takes.
 */
static double wait_for_energy_j(struct fly_session *session)
{
    double energy_j = session_energy_j(session);

    for (int i = 0; isnan(energy_j) && (session->known || session->unasked) &&
                    session_time_s(session) < young_s && i < LOOKS;
         i++) {
        session->clock->sleep_until(session->clock->state,
                                    mono_after_s(session->clock->now(session->clock->state), look_s));
        energy_j = session_energy_j(session);
    }
    return energy_j;
}

/* What the ranks took up to the newest epoch. */
static struct job_epoch measure(struct fly_session *session, double metric)
{
    double time_s[] = {session_time_s(session)},
           energy_j[] = {session->disabled ? NAN : wait_for_energy_j(session)};

    session_join(session, energy_j, 1, time_s, 1);
    return (struct job_epoch){.job = session->definition.name,
                              .trial = session->proposal.trial,
                              .attempt = session->proposal.attempt,
                              .epoch = session->epoch_newest,
                              .metric = isfinite(metric) ? metric : NAN,
                              .energy_j = energy_j[0],
                              .time_s = time_s[0],
                              .reference_per_kwh = carbon_reference_per_kwh(session)};
}

/* The log's answer takes the place of the own one. */
static void take_end(struct fly_session *session, const struct job_answered *answered)
{
    static const enum fly_answer answers[] = {
        [JOB_GO_ON] = FLY_GO_ON, [JOB_REACHED] = FLY_REACHED, [JOB_STOP] = FLY_STOP};

    session->answer = session->reached && answered->answer == JOB_GO_ON && !session->proposal.stops_at_target
                          ? FLY_REACHED
                          : answers[answered->answer];
    session->stop = answered->stop;
    session->reached |= answered->answer == JOB_REACHED;
    session->epochs = answered->epochs;
    session->over = answered->answer == JOB_STOP ||
                    (answered->answer == JOB_REACHED && session->proposal.stops_at_target);
}

static void take(struct fly_session *session, const struct job_answered *answered)
{
    take_end(session, answered);
    session->energy_j = answered->energy_j;
    session->time_s = answered->time_s;
}

/* It came late: training has gone on, and may have ended by itself. */
static void hear(struct fly_session *session, const struct job_answered *answered)
{
    if (session->reached || session->answer == FLY_STOP)
        return;
    if (answered->answer == JOB_GO_ON)
        session->epochs = answered->epochs;
    else
        take_end(session, answered);
}

void session_heed(struct fly_session *session)
{
    union spool_answer answer;

    if (session->post == NULL || is_copy(session) || session_ranks(session) > 1)
        return;
    if (post_news(session->post, SPOOL_PROFILE, &answer))
        limit_hear(session, &answer.choice);
    if (post_news(session->post, SPOOL_REPORT, &answer))
        hear(session, &answer.answered);
}

void session_settle(struct fly_session *session)
{
    if (session->post == NULL || is_copy(session))
        return;
    post_drain(session->post, settle_most_s);
    session_heed(session);
}

static void report_to_log(struct fly_session *session, const struct job_epoch *epoch)
{
    const struct spool_entry entry = {.kind = SPOOL_REPORT, .epoch = *epoch};
    union spool_answer answer;
    uint64_t number;

    post_beat_end(session->post);
    number = session_say(session, &entry, POST_RARELY);
    if (post_settle(session->post, number, SPOOL_REPORT, &answer) && session->known)
        take(session, &answer.answered);
    if (isnan(epoch->energy_j))
        session->note = no_energy;
    else if (session->note == no_energy)
        session->note = NULL;
}

static bool has_ended(const struct fly_session *session)
{
    return session->answer == FLY_STOP ||
           (session->answer == FLY_REACHED && session->proposal.stops_at_target);
}

static bool says(const struct fly_session *session)
{
    return (session->known || session->unasked) && session->options.rank == 0;
}

/* What a program did beyond its end: on record as well, and neither an answer nor what the trial took
 * changes. */
static void report_beyond(struct fly_session *session, double metric)
{
    struct job_epoch epoch;

    session->epoch_newest++;
    epoch = measure(session, metric);
    if (says(session))
        (void)session_say(session, &(struct spool_entry){.kind = SPOOL_REPORT, .epoch = epoch}, POST_RARELY);
}

enum fly_answer fly_session_report(struct fly_session *session, double metric)
{
    double shared[5];
    struct job_epoch epoch;

    if (is_copy(session))
        return FLY_GO_ON;
    fly_session_evaluation_begin(session);
    /* What ended stays so. */
    if (has_ended(session)) {
        if (session->heeds)
            report_beyond(session, metric);
        return session->answer;
    }
    session->epoch = ++session->epoch_newest;
    if (!session->disabled) {
        limit_check(session);
        if (session->limit.tuner == NULL)
            carbon_stands(session, session->limit.held_w);
    }
    epoch = measure(session, metric);
    session->energy_j = session->proposal.energy_j + epoch.energy_j;
    session->time_s = session->proposal.time_s + epoch.time_s;
    if (!session->disabled)
        limit_tell_part(session);
    session->answer = answer_alone(session, metric);
    if (says(session))
        report_to_log(session, &epoch);
    session->reported = true;
    shared[0] = session->answer;
    shared[1] = session->stop;
    shared[2] = session->reached;
    shared[3] = session->epochs;
    shared[4] = session->over;
    session_share(session, shared, sizeof shared / sizeof shared[0]);
    session->answer = (enum fly_answer)shared[0];
    session->stop = (enum job_stop)shared[1];
    session->reached = shared[2] == 1.0;
    session->epochs = (uint32_t)shared[3];
    session->over = shared[4] == 1.0;
    return session->answer;
}

void session_fail(struct fly_session *session, enum trial_outcome outcome, const char *text)
{
    if (session->disabled || is_copy(session) || session->failed || session->released)
        return;
    /* Without the log there is but one batch size, and what did not fit would not again. */
    session->failed = session->known || outcome != TRIAL_OUT_OF_MEMORY;
    if (session->known || session->run_kept)
        session_say_end(session, outcome, text);
}

void fly_session_out_of_memory(struct fly_session *session)
{
    session_fail(session, TRIAL_OUT_OF_MEMORY, "said by the program");
}

bool session_set_epoch(struct fly_session *session, uint32_t epoch)
{
    if (epoch == 0 || (session->reported && epoch <= session->epoch_newest))
        return false;
    session->epoch_newest = epoch - 1;
    return true;
}

void session_release(struct fly_session *session)
{
    if (session->disabled || session->released)
        return;
    session->released = true;
    post_beat_end(session->post);
    carbon_let_go(session, "the program has a session of its own");
    carbon_stands(session, NAN);
    limit_close(session);
    session->limit.turner = NULL;
}

/* How the trial ended as far as this side knows; false: it has not. */
static bool find_outcome(const struct fly_session *session, enum fly_session_end end,
                         enum trial_outcome *out_outcome)
{
    bool has_target = session->definition.target != JOB_NO_TARGET;
    enum trial_outcome all_done = has_target ? TRIAL_NOT_REACHED : TRIAL_REACHED;

    if (session->reached)
        *out_outcome = TRIAL_REACHED;
    else if (session->limit.refused)
        *out_outcome = TRIAL_REFUSED;
    else if (session->answer == FLY_STOP)
        *out_outcome = session->stop == JOB_STOP_EPOCHS ? all_done : TRIAL_STOPPED;
    else if (end == FLY_SESSION_CRASHED)
        *out_outcome = TRIAL_CRASHED;
    else
        *out_outcome = all_done;
    return end != FLY_SESSION_INTERRUPTED || session->answer == FLY_STOP || session->limit.refused ||
           (session->reached && session->proposal.stops_at_target);
}

void session_finish(struct fly_session *session, enum fly_session_end end)
{
    enum trial_outcome outcome;

    limit_tell_part(session);
    if ((session->known || session->run_kept) && session->options.rank == 0 && !session->failed &&
        !session->released && find_outcome(session, end, &outcome))
        session_say_end(session, outcome, "");
}

bool session_wants_again(const struct fly_session *session)
{
    if (session->reached)
        return false;
    if (session->failed || session->limit.refused)
        return true;
    return session->known && session->answer == FLY_STOP &&
           (session->stop != JOB_STOP_EPOCHS || session->definition.target != JOB_NO_TARGET);
}

bool session_tries_left(const struct fly_session *session)
{
    return session->options.tries == FLY_SESSION_ALWAYS ||
           (session->known
                ? !session->proposal.last_try && session->proposal.try_number + 1 < session->options.tries
                : session->asked < session->options.tries);
}

void session_next_try(struct fly_session *session)
{
    session_finish(session, FLY_SESSION_FINISHED);
    session_end_try(session);
    session_begin_try(session);
}

bool fly_session_try_again(struct fly_session *session)
{
    if (session->disabled || is_copy(session) || session->inside || !session_wants_again(session) ||
        !session_tries_left(session))
        return false;
    session_next_try(session);
    return true;
}

int fly_session_exit_status(const struct fly_session *session)
{
    return session_wants_again(session) && (session->inside || session_tries_left(session))
               ? FLY_SESSION_EXIT_AGAIN
               : 0;
}

static double limit_standing_w(const struct session_limit *limit)
{
    struct fly_tuner_report report = {.size = sizeof report};

    if (limit->tuner != NULL && fly_tuner_report(limit->tuner, &report) == 0)
        return report.limit_w;
    return limit->held_w;
}

int fly_session_status(const struct fly_session *session, struct fly_session_status *out_status)
{
    const struct job_proposal *proposal = &session->proposal;
    struct post_status post = {.text = ""};

    if (out_status->size < sizeof *out_status)
        return FLY_EUSAGE;
    if (session->post != NULL && !is_copy(session))
        post = post_look(session->post);
    *out_status = (struct fly_session_status){
        .size = out_status->size,
        .connected = session->known && post.connected,
        .disabled = session->disabled,
        .trial = proposal->trial,
        .attempt = proposal->attempt,
        .recurrence = proposal->recurrence,
        .try_number = proposal->try_number,
        .last_try = proposal->last_try,
        .batch_size = proposal->batch_size,
        .local_batch_size = proposal->local_batch_size,
        .epoch = session->epoch,
        .epochs_done = proposal->epochs_done,
        .epochs_max = session->epochs,
        .answer = session->answer,
        .limit_w = limit_standing_w(&session->limit),
        .energy_j = session->energy_j,
        .time_s = session->time_s,
        .kept = post.kept,
    };
    snprintf(out_status->why, sizeof out_status->why, "%s", proposal->why);
    snprintf(out_status->text, sizeof out_status->text, "%s",
             session->disabled       ? "FLYBALL_DISABLE is set"
             : post.text[0] != '\0'  ? post.text
             : session->note != NULL ? session->note
                                     : "");
    snprintf(out_status->limit_text, sizeof out_status->limit_text, "%s", session->limit.text);
    return 0;
}

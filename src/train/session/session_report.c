/* SPDX-License-Identifier: Apache-2.0 */
/* Reports an epoch: measures it, tells the log, and answers by the log's answer or without it. */
#include <math.h>

#include "train/session/session_private.h"

/* How long a training is too young to have an energy, and how often the meter is asked in that time. */
static const double young_s = 2.0, look_s = 0.02;
enum { LOOKS = 15 };

/* How long to wait for answers that decide what becomes of a try whose program has ended. */
static const double settle_most_s = 0.3;

static const char no_energy[] =
    "the energy of the GPUs is not known: the score of this training is not learnt, its "
    "metric and time are; 'flyball doctor' says why";

/* Answers by the target and by what was known before, when the log gives no answer. */
static enum fly_answer answer_alone(struct fly_session *session, double metric)
{
    session->progress = target_progress_after(&session->options.job, session->progress, metric);
    session->reached |= target_reached(&session->options.job, &session->progress);
    if (session->reached && session->proposal.stops_at_target) {
        session->stop = JOB_STOP_TARGET;
        return FLY_REACHED;
    }
    if (session->epoch >= (session->reached ? session->options.job.max_epochs : session->epochs)) {
        session->stop = session->epoch >= session->options.job.max_epochs ? JOB_STOP_EPOCHS : JOB_STOP_COST;
        return FLY_STOP;
    }
    return session->reached ? FLY_REACHED : FLY_GO_ON;
}

/*
 * Returns the joules used so far. A training that just began may be too short for a figure. A report without
 * one is worth nothing, so this waits, as long as a board's counter takes.
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

/*
 * Counts the steps since the report before; 0: not known. A later attempt may begin within an epoch. A
 * program that tells no steps may have told how many samples an epoch has.
 */
static uint32_t take_steps(struct fly_session *session)
{
    uint64_t begun = session->count.begun, before = session->steps_told;
    bool whole = session->reported || (session->proposal.attempt <= 1 && !session->resumed);
    uint64_t batch_size = session->proposal.batch_size;
    uint64_t told = (session->options.samples_per_epoch + batch_size - 1) / batch_size;

    session->steps_told = begun;
    /* Where an epoch is so many samples, it does not grow. */
    if (session->options.job.report_every_samples > 0)
        return 0;
    if (session->uncounted || !whole || begun < before || begun - before > UINT32_MAX)
        return 0;
    if (begun == 0)
        return told <= UINT32_MAX ? (uint32_t)told : 0;
    return (uint32_t)(begun - before);
}

/* Measures what the ranks took up to the newest epoch. */
static struct job_epoch measure(struct fly_session *session, double metric)
{
    double startup_s = session->startup.time_s;
    double time_s[] = {session_time_s(session), isnan(startup_s) ? 0.0 : startup_s},
           energy_j[] = {session->disabled ? NAN : wait_for_energy_j(session), session->startup.energy_j};

    session_join(session, energy_j, 2, time_s, 2);
    return (struct job_epoch){.job = session->options.job.name,
                              .trial = session->proposal.trial,
                              .attempt = session->proposal.attempt,
                              .epoch = session->epoch_newest,
                              .metric = isfinite(metric) ? metric : NAN,
                              .energy_j = energy_j[0],
                              .time_s = time_s[0],
                              .reference_per_kwh = session_account_reference_per_kwh(session),
                              .steps = take_steps(session),
                              .startup_energy_j = energy_j[1],
                              .startup_time_s = time_s[1] > 0.0 ? time_s[1] : NAN};
}

/* Replaces the session's own answer by the log's. */
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

/*
 * Takes an answer that came late: the training has gone on, and may have ended by itself. Where it was
 * stopped without the log, what it reported before it heard of that may have reached the target: then it did.
 */
static void hear(struct fly_session *session, const struct job_answered *answered)
{
    if (session->reached || (session->answer == FLY_STOP && answered->answer != JOB_REACHED))
        return;
    if (answered->answer == JOB_GO_ON)
        session->epochs = answered->epochs;
    else
        take_end(session, answered);
}

void session_heed(struct fly_session *session)
{
    union spool_answer answer;

    if (session->post == NULL || session_is_copy(session) || session_ranks(session) > 1)
        return;
    if (post_news(session->post, SPOOL_PROFILE, &answer))
        session_profile_hear(session, &answer.choice);
    if (post_news(session->post, SPOOL_REPORT, &answer))
        hear(session, &answer.answered);
}

void session_settle(struct fly_session *session)
{
    if (session->post == NULL || session_is_copy(session))
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

static bool says(const struct fly_session *session)
{
    return (session->known || session->unasked) && session->options.rank == 0;
}

/*
 * Reports an epoch after the trial's end. The log records it, but neither the answer nor what the trial took
 * changes.
 */
static void report_beyond(struct fly_session *session, double metric)
{
    struct job_epoch epoch;

    session->epoch_newest++;
    epoch = measure(session, metric);
    if (says(session))
        (void)session_say(session, &(struct spool_entry){.kind = SPOOL_REPORT, .epoch = epoch}, POST_RARELY);
}

/*
 * Where an epoch is so many samples: finds which one the steps so far have ended, and whether it is a new
 * one. Of a program that tells no steps each report stands for those of the definition; if it has none, the
 * program is taken at its word.
 */
static bool count_samples(struct fly_session *session)
{
    uint64_t every = session->options.job.report_every_samples;
    uint64_t begun = session->count.begun;
    uint64_t steps = begun > 0 ? begun : session->reports * session->options.job.report_every_steps;
    uint64_t samples = steps * session->proposal.batch_size, ended;

    if (every == 0 || samples == 0)
        return true;
    ended = session->epoch_first + samples / every;
    if (ended <= session->epoch_counted || ended > UINT32_MAX)
        return false;
    session->epoch_newest = (uint32_t)ended - 1;
    session->epoch_counted = (uint32_t)ended;
    return true;
}

enum fly_answer fly_session_report(struct fly_session *session, double metric)
{
    double shared[5];
    struct job_epoch epoch;

    if (session_is_copy(session))
        return FLY_GO_ON;
    fly_session_evaluation_begin(session);
    /* A trial that has ended stays ended. */
    if (session_has_ended(session)) {
        if (session->heeds)
            report_beyond(session, metric);
        return session->answer;
    }
    session->limit.refused = session->limit.spent = false; /* from here on the report's answer counts */
    session->reports++;
    if (!count_samples(session))
        return session->answer;
    session->epoch = ++session->epoch_newest;
    if (!session->disabled) {
        session_limit_check(session);
        if (session->limit.tuner == NULL)
            session_account_stands(session, session->limit.held_w);
    }
    epoch = measure(session, metric);
    session->energy_j = session->proposal.energy_j + epoch.energy_j;
    session->time_s = session->proposal.time_s + epoch.time_s;
    if (!session->disabled)
        session_profile_tell_part(session);
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

bool session_set_epoch(struct fly_session *session, uint32_t epoch)
{
    if (session->options.job.report_every_samples > 0 &&
        (session->count.begun > 0 || session->options.job.report_every_steps > 0))
        return true; /* samples count instead */
    if (epoch == 0 || (session->reported && epoch <= session->epoch_newest))
        return false;
    session->epoch_newest = epoch - 1;
    return true;
}

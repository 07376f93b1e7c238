/* SPDX-License-Identifier: Apache-2.0 */
/* How far the training of a session is, and how much of it is left. */
#include <math.h>

#include "train/session/session_private.h"

/* A step takes at least this share of what it usually takes. */
static const double least_share = 0.1;

double session_time_s(const struct fly_session *session)
{
    return session->stopped ? session->stopped_time_s
                            : mono_elapsed_s(session->begin, session->clock->now(session->clock->state));
}

bool session_has_ended(const struct fly_session *session)
{
    return session->answer == FLY_STOP ||
           (session->answer == FLY_REACHED && session->proposal.stops_at_target);
}

double session_expected_steps(const struct fly_session *session)
{
    uint64_t batch_size = session->proposal.batch_size;
    uint64_t every = session->options.job.report_every_samples;
    uint64_t samples = every > 0 ? every : session->options.samples_per_epoch;
    uint64_t steps = (samples + batch_size - 1) / batch_size;

    if (steps > 0)
        return (double)steps;
    return session->proposal.known_units_per_epoch > 1.0 ? session->proposal.known_units_per_epoch : 0.0;
}

/*
 * Steps of a whole epoch: as the program told, as in earlier trainings, or as counted; NAN: not known yet.
 * Once known, it stays the same.
 */
static double steps_per_epoch(const struct fly_session *session)
{
    double expected = session_expected_steps(session);

    if (expected > 0.0)
        return expected;
    return session->count.longest > 0 ? (double)session->count.longest : NAN;
}

double session_step_s(const struct fly_session *session)
{
    double usual_s = session->carbon.usual_step_s,
           time_s = step_count_time_s(&session->count, session->clock);
    uint64_t steps = session->count.begun;

    if (steps < 2 || !(time_s > 0.0))
        return usual_s;
    /* The first steps may only have been queued on the GPU. */
    return isnan(usual_s) ? time_s / (double)(steps - 1)
                          : fmax(time_s / (double)(steps - 1), least_share * usual_s);
}

/*
 * How many epochs have ended. Until the program says or shows how far its checkpoint was, the log's count of
 * earlier attempts holds.
 */
static double epochs_ended(const struct fly_session *session)
{
    return session->reported || session->resumed ? (double)session->epoch
                                                 : (double)session->proposal.epochs_done;
}

/*
 * The time that earlier attempts spent in steps. The log has their whole time, with evaluation. The same
 * share of it counts as in this attempt; until that share is known, at most what the chosen limit takes.
 */
static double earlier_step_time_s(const struct fly_session *session)
{
    double all_s = session->proposal.time_s, own_s = session_time_s(session);
    double usual_s =
        (double)session->proposal.epochs_done * steps_per_epoch(session) * session->carbon.usual_step_s;

    if (!(all_s > 0.0))
        return 0.0;
    if (session->reported && own_s > 0.0)
        return all_s * fmin(1.0, step_count_time_s(&session->count, session->clock) / own_s);
    return usual_s < all_s ? usual_s : all_s;
}

/*
 * How many epochs the whole training is expected to have; NAN: not known. A training that stops at its target
 * ends with an epoch.
 */
static double epochs_expected(const struct fly_session *session)
{
    double most = (double)session->options.job.max_epochs;

    if (session->options.job.target == FLY_TARGET_NONE || !session->proposal.stops_at_target)
        return most;
    if (isnan(session->proposal.expected_epochs))
        return NAN;
    return fmin(session->proposal.expected_epochs, fmin(most, (double)session->epochs));
}

bool session_progress(const struct fly_session *session, struct carbon_progress *out_progress)
{
    double per_epoch = steps_per_epoch(session), own = (double)session->count.begun;
    double in_epoch = session->count.open ? (double)step_count_in_epoch(&session->count) : 0.0;
    double done = epochs_ended(session) * per_epoch + in_epoch;
    double all = session->carbon.options.steps > 0 ? (double)session->carbon.options.steps
                                                   : epochs_expected(session) * per_epoch;
    /* Beyond what was expected, only the rest of this epoch is known. */
    double least = fmax(per_epoch - in_epoch, 1.0);

    if (isnan(per_epoch))
        return false;
    *out_progress = (struct carbon_progress){
        .steps_done = fmax(done, own),
        .steps_earlier = fmax(done - own, 0.0),
        .steps_left = isnan(all) ? NAN : fmax(all - done, least),
        .step_time_s = earlier_step_time_s(session) + step_count_time_s(&session->count, session->clock),
    };
    return true;
}

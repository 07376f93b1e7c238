/* SPDX-License-Identifier: Apache-2.0 */
/* How far the training of a session is, and how much of it is left. */
#include <math.h>

#include "train/session/session_private.h"

/* Of what a step takes usually, it takes. */
static const double least_share = 0.1;

double session_time_s(const struct fly_session *session)
{
    return session->stopped ? session->stopped_time_s
                            : mono_elapsed_s(session->begin, session->clock->now(session->clock->state));
}

double session_told_steps(const struct fly_session *session)
{
    uint64_t batch_size = session->proposal.batch_size;
    uint64_t steps = (session->options.samples_per_epoch + batch_size - 1) / batch_size;

    return (double)steps;
}

/* Of a whole epoch: as told, as in the trainings before, or as seen; NAN: not known yet. Stays the same. */
static double steps_per_epoch(const struct fly_session *session)
{
    double told = session_told_steps(session);

    if (told > 0.0)
        return told;
    if (session->proposal.known_units_per_epoch > 1.0)
        return session->proposal.known_units_per_epoch;
    return session->count.longest > 0 ? (double)session->count.longest : NAN;
}

double session_step_s(const struct fly_session *session)
{
    double usual_s = session->carbon.usual_step_s,
           time_s = step_count_time_s(&session->count, session->clock);
    uint64_t steps = session->count.begun;

    if (steps < 2 || !(time_s > 0.0))
        return usual_s;
    /* The first ones of a program may only be handed to the GPU. */
    return isnan(usual_s) ? time_s / (double)(steps - 1)
                          : fmax(time_s / (double)(steps - 1), least_share * usual_s);
}

/* Until the program says or shows how far its checkpoint was, what the log saw of earlier attempts. */
static double epochs_ended(const struct fly_session *session)
{
    return session->reported || session->resumed ? (double)session->epoch
                                                 : (double)session->proposal.epochs_done;
}

/*
 * What earlier attempts spent in steps. The log tells their whole time, evaluation and all;
 * of it the same share as of this one's, and until that is seen no more than the chosen limit takes.
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

/* Of the whole training; NAN: not known. At the target's first sight it ends with an epoch. */
static double epochs_expected(const struct fly_session *session)
{
    double most = (double)session->definition.max_epochs;

    if (session->definition.target == JOB_NO_TARGET || !session->proposal.stops_at_target)
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
    /* Past what was expected, the epoch under way is all that is known of. */
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

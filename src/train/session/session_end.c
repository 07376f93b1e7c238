/* SPDX-License-Identifier: Apache-2.0 */
/* Decides how a try ends, and whether another follows. */
#include <math.h>

#include "train/session/session_private.h"

void session_fail(struct fly_session *session, enum trial_outcome outcome, const char *text)
{
    if (session->disabled || session_is_copy(session) || session->failed || session->released)
        return;
    /* Without the log there is only one batch size: what did not fit once will not fit again. */
    session->failed = session->known || outcome != TRIAL_OUT_OF_MEMORY;
    if (session->known || session->run_kept)
        session_say_end(session, outcome, text);
}

void session_leave(struct fly_session *session, const char *text)
{
    session->nothing_learnt = true;
    session_fail(session, TRIAL_CRASHED, text);
}

void fly_session_out_of_memory(struct fly_session *session)
{
    session_fail(session, TRIAL_OUT_OF_MEMORY, "said by the program");
}

void fly_session_trains_with(struct fly_session *session, uint32_t batch_size)
{
    if (batch_size < session->proposal.batch_size)
        session_fail(session, TRIAL_OUT_OF_MEMORY, "the program went on with a smaller batch size");
}

bool fly_session_is_over(const struct fly_session *session)
{
    return session->failed || session_has_ended(session);
}

void fly_session_training_ended(struct fly_session *session)
{
    if (session_is_copy(session) || fly_session_is_over(session))
        return;
    session->answer = FLY_STOP;
    session->stop = JOB_STOP_EPOCHS;
}

void session_release(struct fly_session *session)
{
    if (session->disabled || session->released)
        return;
    session->released = true;
    post_beat_end(session->post);
    session_carbon_let_go(session, "the program has a session of its own");
    session_account_stands(session, NAN);
    session_limit_close(session);
    session->limit.turner = NULL;
}

/* Finds how the trial ended, as far as this side knows; false: it has not. */
static bool find_outcome(const struct fly_session *session, enum fly_session_end end,
                         enum trial_outcome *out_outcome)
{
    bool has_target = session->options.job.target != FLY_TARGET_NONE;
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

    session_profile_end(session);
    if ((session->known || session->run_kept) && session->options.rank == 0 && !session->failed &&
        !session->released && find_outcome(session, end, &outcome)) {
        session->nothing_learnt = outcome == TRIAL_CRASHED && !session_has_begun(session);
        session_say_end(session, outcome, session->nothing_learnt ? JOB_END_WITHOUT_STEP : "");
    }
}

bool session_wants_again(const struct fly_session *session)
{
    if (session->reached)
        return false;
    if (session->nothing_learnt)
        return session->proposal.untried;
    if (session->failed || session->limit.refused)
        return true;
    return session->known && session->answer == FLY_STOP &&
           (session->stop != JOB_STOP_EPOCHS || session->options.job.target != FLY_TARGET_NONE);
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
    if (session->disabled || session_is_copy(session) || session->inside || !session_wants_again(session) ||
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

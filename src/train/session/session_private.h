/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_SESSION_SESSION_PRIVATE_H
#define FLYBALL_TRAIN_SESSION_SESSION_PRIVATE_H

#include "base/thread/fork_guard.h"
#include "train/session/session.h"

/*
 * What the session's files ask of each other, each only of those below it:
 *
 *     session_open.c       makes a session, and closes it
 *     session.c            what a training calls; session_report.c an epoch reported; session_end.c how
 *                          a try ends, and whether another follows
 *     session_try.c        asks what to run, and begins and ends the try
 *     session_limit.c      what may be turned, and the hooks
 *     session_profile.c    a power profile that is measured
 *     session_carbon.c     follows the grid
 *     session_account.c    the account of each training
 *     session_hold.c       sets a limit, and sees whether it stands
 *     session_progress.c   how far the training is
 *     session_ranks.c      joins the ranks
 *
 * post.h is the way to the log.
 */

/* After a fork the child's copy does nothing. */
static inline bool session_is_copy(const struct fly_session *session)
{
    return session->forks != fork_generation();
}

/* session_ranks.c: rank 0's values for all. */
void session_share(struct fly_session *session, double *values, size_t count);
/* Over all ranks, in place: sums, and maxima. */
void session_join(struct fly_session *session, double *sums, size_t sum_count, double *maxima,
                  size_t max_count);
/* So many ranks. */
uint32_t session_ranks(const struct fly_session *session);

/* session_limit.c: what may be turned, and the hooks */

/* Finds what may be turned. */
void session_limit_open(struct fly_session *session);
/* As the proposal says: sets the limit, or begins to measure. Collective. */
void session_limit_begin(struct fly_session *session);
/* The hooks. */
void session_limit_epoch_begin(struct fly_session *session);
void session_limit_step(struct fly_session *session);
void session_limit_epoch_end(struct fly_session *session);
void session_limit_close(struct fly_session *session);

/* session_profile.c */

/* Begins to measure, as the proposal says. Collective. */
void session_profile_begin(struct fly_session *session);
/* What earlier trainings measured, for all ranks. Collective. */
void session_profile_share(struct fly_session *session);
/* The hooks while it is measured. Collective. */
void session_profile_step(struct fly_session *session);
void session_profile_epoch_end(struct fly_session *session);
/* The log's choice, which came late. */
void session_profile_hear(struct fly_session *session, const struct job_choice *choice);
/* Tells the log what is measured so far of a profile that is not whole: a training may end any time. */
void session_profile_tell_part(struct fly_session *session);

/* session_hold.c */

/* Notes why no limit is turned, once. */
void session_limit_explain(struct session_limit *limit, const char *text);
/* Sets the log's choice, or the tuner's where that could not be asked. */
void session_limit_hold_choice(struct fly_session *session, double limit_w);
/* Whether what was set stands; if not it is let go. */
void session_limit_check(struct fly_session *session);
/* Another limit in place of the one that is held, if that still stands. */
void session_limit_change(struct fly_session *session, double limit_w);

/* session_carbon.c */

/* A training begins. */
void session_carbon_begin(struct fly_session *session);
/* The whole power profile, of which the choice is held: from now on the limit follows the grid, if it
 * may. Times are of a step. Collective. */
void session_carbon_profiled(struct fly_session *session, const struct fly_power_point *points, size_t count);
/* Asks for the limit that is right now. Collective. */
void session_carbon_follow(struct fly_session *session);
/* The limit is somebody else's from now on. */
void session_carbon_let_go(struct fly_session *session, const char *note);
/* Ends the account. */
void session_carbon_end(struct fly_session *session);

/* session_account.c */

/* FLY_EUSAGE for options out of range. */
int session_account_check(const struct fly_session *session, struct fly_error *out_error);
/* Opens the governor, which keeps the account where nobody else does. Collective. */
void session_account_open(struct fly_session *session);
/* Tells the steps that have begun. */
void session_account_steps(struct fly_session *session);
/* That limit stands; NAN: not known. */
void session_account_stands(struct fly_session *session, double limit_w);
/* The reference of the job's objective for the log; NAN. */
double session_account_reference_per_kwh(const struct fly_session *session);
/* The moment to finish by, since 1970; 0: none. */
int64_t session_finish_by_s(const struct fly_session *session);
/* What a step takes under that limit; NAN: it was not measured. */
double session_time_at_s(const struct fly_power_point *points, size_t count, double limit_w);
/* The bound with that choice of a limit; INFINITY: not known yet. */
double session_bound_of(const struct fly_session *session, const struct fly_power_point *points, size_t count,
                        double choice_w);

/* session_progress.c */

/* In an epoch, as the program told; 0: it did not. */
double session_told_steps(const struct fly_session *session);
/* What a step takes; NAN: not known. */
double session_step_s(const struct fly_session *session);
/* False where nobody knows how long an epoch is. */
bool session_progress(const struct fly_session *session, struct carbon_progress *out_progress);

/* session_try.c */

/* Asks what to run, and begins to measure. Collective. */
void session_begin_try(struct fly_session *session);
/* Hands a letter to the post; of a trial without a number with the run before it. Its number. */
uint64_t session_say(struct fly_session *session, const struct spool_entry *entry, enum post_haste haste);
/* Puts limits back and ends the window. */
void session_end_try(struct fly_session *session);

/* session_end.c: writes down how this try ended, where it has. */
void session_finish(struct fly_session *session, enum fly_session_end end);

#endif

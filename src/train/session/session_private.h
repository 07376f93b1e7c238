/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_SESSION_SESSION_PRIVATE_H
#define FLYBALL_TRAIN_SESSION_SESSION_PRIVATE_H

#include "base/thread/fork_guard.h"
#include "train/session/session.h"

/*
 * What the session's files ask of each other. Each uses only those below it:
 *
 *     session_open.c    makes a session, and closes it
 *     session.c         what a training calls: steps, reports, a try's end; reads a program's words
 *     session_try.c     asks what to run, and begins and ends the try; names its directory
 *     session_limit.c   finds what may be turned, and measures a power profile; the hooks
 *     session_carbon.c  how far the training is, its limit and its account; follows the grid
 *
 * post.h is the way to the log. "Collective" functions must be called on all ranks.
 */

/* Whether this is a child's copy after a fork, which does nothing. */
static inline bool session_is_copy(const struct fly_session *session)
{
    return session->forks != fork_generation();
}

/* session_carbon.c: gives rank 0's values to all ranks. */
void session_share(struct fly_session *session, double *values, size_t count);
/* Joins values over all ranks, in place: sums, and maxima. */
void session_join(struct fly_session *session, double *sums, size_t sum_count, double *maxima,
                  size_t max_count);
/* How many ranks there are. */
uint32_t session_ranks(const struct fly_session *session);

/* How many of them train with samples of their own. */
uint32_t session_replicas(const struct fly_session *session);

/* Finds where the tries' directories lie. */
void session_directory_open(struct fly_session *session);

/* session_limit.c: finds what may be turned; the hooks */

/* Finds which GPUs and limits may be turned. */
void session_limit_open(struct fly_session *session);
/* Follows the proposal: sets the limit, or begins to measure. Collective. */
void session_limit_begin(struct fly_session *session);
/* The hooks. */
void session_limit_epoch_begin(struct fly_session *session);
void session_limit_step(struct fly_session *session);
void session_limit_epoch_end(struct fly_session *session);
void session_limit_close(struct fly_session *session);

/* Takes the log's choice, which came late. */
void session_profile_hear(struct fly_session *session, const struct job_choice *choice);
/* Tells the log the points measured so far of an unfinished profile: a training may end any time. */
void session_profile_tell_part(struct fly_session *session);
/* The same at the training's end: the limit on trial is measured no further. */
void session_profile_end(struct fly_session *session);

/* Notes why no limit is turned; the first reason stays. */
void session_limit_explain(struct session_limit *limit, const char *text);
/* Sets the limit that the log chose, or the tuner when the log could not be asked. */
void session_limit_hold_choice(struct fly_session *session, double limit_w);
/* Checks whether the limit that was set still stands; if not, the session lets go of it. */
void session_limit_check(struct fly_session *session);

/* Begins a training. */
void session_carbon_begin(struct fly_session *session);
/*
 * Takes the whole power profile, from which the log chose the limit that is held: from now on the limit
 * follows the grid, if it may. Times are of one step. Collective.
 */
void session_carbon_profiled(struct fly_session *session, const struct fly_power_point *points, size_t count);
/* Asks the governor for the right limit now, and sets it. Collective. */
void session_carbon_follow(struct fly_session *session);
/* The session no longer controls the limit; `note` says why. */
void session_carbon_let_go(struct fly_session *session, const char *note);
/* Ends the training's account. */
void session_carbon_end(struct fly_session *session);

/* Checks the options; returns FLY_EUSAGE for one out of range. */
int session_account_check(const struct fly_session *session, struct fly_error *out_error);
/* Tells the account how many steps have begun. */
void session_account_steps(struct fly_session *session);
/* Tells the account which limit stands; NAN: not known. */
void session_account_stands(struct fly_session *session, double limit_w);
/* The reference of the job's objective, for the log; NAN: none. */
double session_account_reference_per_kwh(const struct fly_session *session);

/* Steps in an epoch, as the program told, or as the log expects from other trainings; 0: neither. */
double session_expected_steps(const struct fly_session *session);
/* Whether an answer ended the training. */
bool session_has_ended(const struct fly_session *session);

/* session_try.c */

/* Asks what to run, and begins to measure. Collective. */
void session_begin_try(struct fly_session *session);
/*
 * Hands a letter to the post, and before it the run if the log has no trial yet. Returns the letter's number.
 */
uint64_t session_say(struct fly_session *session, const struct spool_entry *entry, enum post_haste haste);
/*
 * Tells a `flyball run --job` around this program that a session reports, so that it does not report too; and
 * once more when the training begins.
 */
void session_announce(const struct fly_session *session);
/* Notes that an epoch, or a `step` of it, begins: the first ends the start-up, or else the first epoch. */
void session_note_begin(struct fly_session *session, bool step);
/* Puts limits back, and ends the meter's window. */
void session_end_try(struct fly_session *session);

/* session.c: reports how this try ended, if it has. */
void session_finish(struct fly_session *session, enum fly_session_end end);

#endif

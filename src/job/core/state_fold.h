/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_STATE_FOLD_H
#define FLYBALL_JOB_CORE_STATE_FOLD_H

#include "job/core/state.h"

/* What the fold and the snapshot of a state share. */

/* Sets the definition of an empty state. FLY_EUNSUPPORTED for an unknown policy. */
int job_state_define(struct job_state *state, const struct job_definition *definition,
                     const struct batch_policy *const *plugins, struct fly_error *out_error);

/* Adds an open trial, with the highest number so far. */
int job_state_open(struct job_state *state, const struct job_trial *trial, struct fly_error *out_error);
void job_state_shut(struct job_state *state, const struct job_trial *trial);
void job_state_forget_silent(struct job_state *state);

/* Adds an unfinished recurrence; the oldest makes room. */
struct job_recurrence *job_state_submit(struct job_state *state, uint64_t number);
void job_state_finish(struct job_state *state, const struct job_recurrence *recurrence);

#endif

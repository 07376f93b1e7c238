/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_SNAPSHOT_H
#define FLYBALL_JOB_DECIDE_STATE_SNAPSHOT_H

#include "base/buffer.h"
#include "job/decide/state.h"

/* A state as bytes, so that a new process need not fold a long log. */

enum { JOB_SNAPSHOT_MAX = 32 << 20 /* bytes; a larger state is folded anew each time */ };

/* Whether a snapshot can be made: not of a plug-in without the slots. */
bool job_state_saves(const struct job_state *state);

/* Appends the state's bytes; the buffer says whether they fitted. */
void job_state_save(const struct job_state *state, struct buffer *bytes);

/* Into an empty state: 0; 1 for bytes that are no state of this version; or FLY_ENOMEM. */
int job_state_load(struct job_state *state, const void *bytes, size_t length,
                   const struct batch_policy *const *plugins, struct fly_error *out_error);

#endif

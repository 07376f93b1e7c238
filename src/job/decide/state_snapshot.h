/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_SNAPSHOT_H
#define FLYBALL_JOB_DECIDE_STATE_SNAPSHOT_H

#include "base/buffer.h"
#include "job/decide/state.h"

/* Saves a state as bytes, so that a new process need not fold a long log. */

enum { JOB_SNAPSHOT_MAX = 32 << 20 /* bytes; a larger state is folded anew each time */ };

/* Whether the state can be saved: not when its policy is a plug-in without the slots for it. */
bool job_state_saves(const struct job_state *state);

/* Appends the state's bytes; the buffer says whether they fit. */
void job_state_save(const struct job_state *state, struct buffer *bytes);

/*
 * Loads bytes into an empty state. Returns 0; 1 when the bytes are no state of this version; or FLY_ENOMEM.
 */
int job_state_load(struct job_state *state, const void *bytes, size_t length,
                   const struct batch_policy *const *plugins, struct fly_error *out_error);

#endif

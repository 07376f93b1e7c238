/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_FOLD_H
#define FLYBALL_JOB_DECIDE_STATE_FOLD_H

#include <jansson.h>

#include "job/decide/state.h"

/*
 * Folds the next event into the state. Returns FLY_EDATA for a body that does not fit, FLY_EUNSUPPORTED for a
 * kind of event or a policy that this version does not know. JOB_FOLD_ANEW: the objective changed; the state
 * is empty except for the objective, and you must fold the log again from its first event. After an error do
 * not use the state.
 */
enum { JOB_FOLD_ANEW = 1 };
int job_state_fold(struct job_state *state, const struct store_event *event,
                   const struct batch_policy *const *plugins, struct fly_error *out_error);

/* Like job_state_fold, with the event's body as it was written; NULL: it is parsed from the event. */
int job_state_fold_body(struct job_state *state, const struct store_event *event, json_t *body,
                        const struct batch_policy *const *plugins, struct fly_error *out_error);

#endif

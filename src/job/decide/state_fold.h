/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_FOLD_H
#define FLYBALL_JOB_DECIDE_STATE_FOLD_H

#include <jansson.h>

#include "job/decide/state.h"

/*
 * Takes the next event in. FLY_EDATA for a body that does not fit, FLY_EUNSUPPORTED
 * for a kind or a policy that this version does not know. JOB_FOLD_ANEW: the
 * objective changed; the state is empty but for it, and has to be given the log from
 * its first event again. After an error the state is of no use.
 */
enum { JOB_FOLD_ANEW = 1 };
int job_state_fold(struct job_state *state, const struct store_event *event,
                   const struct batch_policy *const *plugins, struct fly_error *out_error);

/* The same with the event's body as it was written; `event->body` is not looked at. NULL: not JSON. */
int job_state_fold_body(struct job_state *state, const struct store_event *event, json_t *body,
                        const struct batch_policy *const *plugins, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_DEMO_HISTORY_H
#define FLYBALL_DEMO_DEMO_HISTORY_H

#include "demo/demo.h"

/*
 * The recurrences of one of the demo's jobs. Each is a session (<flyball/session.h>) of
 * the job over the demo's store, as a training program would have it, and beside it one
 * of `NAME-default`, which keeps batch size and limit as they were, with the same luck.
 */
enum { DEMO_TRIES = 3 /* of a recurrence: the last runs the best known choice */ };

/*
 * Runs them all. `go_on` is asked before each. FLY_ENOMEM, or what kept a session from
 * its store; a recurrence without a model ends both sides early, which is a result.
 */
int demo_history_run(const struct demo *demo, struct demo_job *job, bool (*go_on)(void *context),
                     void *context, struct fly_error *out_error);

/* FLY_ECONFLICT where the store has one of the demo's jobs already, or what keeps it from opening. */
int demo_history_check(const struct demo_plan *plan, const struct demo_job *jobs,
                       struct fly_error *out_error);

#endif

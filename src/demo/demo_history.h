/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_DEMO_HISTORY_H
#define FLYBALL_DEMO_DEMO_HISTORY_H

#include "demo/demo.h"

/*
 * The recurrences of one of the demo's jobs. Each is a session (<flyball/session.h>) of the job
 * over the demo's store, as in a training program. Beside it runs a session of `NAME-default`,
 * which keeps batch size and limit as they were, with the same luck.
 */
enum { DEMO_TRIES = 3 /* of a recurrence; the last one runs the best known choice */ };

/*
 * Runs all recurrences, and asks `go_on` before each. FLY_ENOMEM, or the error that kept a
 * session from its store. A recurrence without a model ends both sides early, which is a result.
 */
int demo_history_run(const struct demo *demo, struct demo_job *job, bool (*go_on)(void *context),
                     void *context, struct fly_error *out_error);

/* Reads from the job's log what it saves, as `flyball job show` does. */
int demo_history_savings(const struct demo_plan *plan, struct demo_job *job, struct fly_error *out_error);

/*
 * Checks that the store can be used. FLY_ECONFLICT if it already has one of the demo's jobs, or
 * the error of opening it.
 */
int demo_history_check(const struct demo_plan *plan, const struct demo_job *jobs,
                       struct fly_error *out_error);

#endif

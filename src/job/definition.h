/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DEFINITION_H
#define FLYBALL_JOB_DEFINITION_H

#include "base/members.h"
#include "job/job.h"

/*
 * A job's definition as JSON, as it stands in the log, and back.
 *
 *     {"name": "digits", "batch_sizes": [16, 32], "default_batch_size": 32,
 *      "objective": {"kind": "energy", "eta": 0.5, "max_slowdown": 1.03}, "beta": 2.0,
 *      "target": "at_least", "target_metric": 0.9, "trains_on": false, "max_epochs": 30,
 *      "control_every": 10, "policy": "zeus", "seed": 1, "window": 0,
 *      "one_at_a_time": false, "generator": "philox", "pruning_rounds": 2,
 *      "explorations": 2, "prior_mean": 0.0, "prior_precision": 0.0, "client": ""}
 *
 * A max_slowdown or beta of null is infinite; target_metric is null without a target.
 */

/* A new reference, or NULL when memory is exhausted or a text is no UTF-8. */
json_t *definition_to_json(const struct job_definition *definition);

/*
 * Texts and lists go into `arena`. What does not fit is left in `members`; the rest is
 * for job_definition_check. Returns 0 or FLY_ENOMEM.
 */
int definition_from_json(struct members *members, struct arena *arena, struct job_definition *out_definition);

json_t *objective_to_json(const struct fly_objective *objective);
struct fly_objective objective_from_json(struct members *members);

/* FLY_ECONFLICT with the fields in which the two differ, 0 when they are the same. */
int definition_compare(const struct job_definition *registered, const struct job_definition *now,
                       struct fly_error *out_error);

#endif

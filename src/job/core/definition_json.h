/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_DEFINITION_JSON_H
#define FLYBALL_JOB_CORE_DEFINITION_JSON_H

#include <jansson.h>

#include "base/arena.h"
#include "job/core/job.h"

/*
 * A job's definition as JSON (shapes.h), as in the log, and back.
 *
 *     {"name": "digits", "batch_sizes": [16, 32], "default_batch_size": 32,
 *      "objective": {"kind": "energy", "eta": 0.5, "max_slowdown": 1.03}, "beta": 2.0,
 *      "target": "at_least", "target_metric": 0.9, "trains_on": false, "max_epochs": 30,
 *      "control_every": 10, "policy": "bayes", "auto_policy_version": 1, "seed": 1, "window": 0,
 *      "one_at_a_time": false, "generator": "philox", "pruning_rounds": 2,
 *      "explorations": 2, "prior_mean": 0.0, "prior_precision": 0.0, "client": "",
 *      "grid": "gb:national"}
 *
 * `grid`, `policy_sha256`, `target_hold`, `best_so_far`, `report_every_samples`,
 * `report_every_steps`, `max_metric_loss` and `no_default` are present only when there is one, `policy` when
 * one is named (on record always), `auto_policy_version` when nobody had named it. A max_slowdown or beta of
 * null is infinite; target_metric is null without a target.
 */

/*
 * The definition as it is written: without a target the target's metric means nothing, and becomes unknown.
 * Borrows.
 */
struct job_definition definition_on_record(const struct job_definition *definition);

/* Returns a new reference, or NULL when memory is exhausted or a text is not UTF-8. */
json_t *definition_to_json(const struct job_definition *definition);

/*
 * Reads a definition on record; texts and lists go into `arena`.
 * Returns FLY_EDATA or FLY_ELIMIT for another form;
 * job_definition_check checks the rest.
 */
int definition_from_json(json_t *json, struct arena *arena, struct job_definition *out_definition,
                         struct fly_error *out_error);

json_t *objective_to_json(const struct fly_objective *objective);

/*
 * Returns FLY_ECONFLICT with the fields in which the two differ, 0 when they are the same. `policy` is the
 * one that holds now, which a user may have set since. What is not named, policy or objective, is no
 * difference.
 */
int definition_compare(const struct job_definition *registered, const char *policy,
                       const struct job_definition *now, struct fly_error *out_error);

#endif

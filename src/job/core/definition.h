/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_DEFINITION_H
#define FLYBALL_JOB_CORE_DEFINITION_H

#include <jansson.h>

#include "base/arena.h"
#include "job/core/job.h"

/* The default definition of a job, the checks of one, and its JSON. */

/*
 * Return FLY_EUSAGE for an objective that needs figures that the job's grid does not have, and for a bound or
 * controls of a job without a default.
 */
int definition_allows(const struct fly_job_definition *definition, const struct fly_objective *objective,
                      struct fly_error *out_error);
int definition_allows_controls(const struct fly_job_definition *definition, uint32_t control_every,
                               struct fly_error *out_error);

/* What is meant by an objective of which not all is named, and of a new job that is defined so. */
struct fly_objective objective_settled(const struct fly_objective *named);
struct fly_objective definition_objective(const struct fly_job_definition *definition);

/* Nothing is named, beta is 2, there are two rounds and two explorations; the rest is zero, or NAN for none.
 */
extern const struct fly_job_definition job_definition_default;

/* The word for a policy that is not named. */
#define JOB_POLICY_AUTO "auto"

/* The share of an epoch that a live power profile takes, until one is known in steps. */
#define JOB_PROFILE_WINDOW 0.1

/*
 * Makes a definition of a session's options, in which what is 0 is not set: such members get their defaults.
 * An epoch of evaluations after so many steps has the samples of one at the default batch size.
 */
void definition_settle(struct fly_job_definition *definition);

/* Copies all that it points to into the arena; false without memory. */
bool definition_keep(struct fly_job_definition *definition, struct arena *arena);

/* Whether the definition names a policy; one on record always does. */
bool definition_names_policy(const struct fly_job_definition *definition);

/* The policy that holds now. */
const char *job_shown_policy(const struct job_shown *shown);

/* Whether a job may have that name. */
bool job_name_fits(const char *name);

/* Returns FLY_EUSAGE or FLY_ELIMIT with the field. `define` calls it too. */
int job_definition_check(const struct fly_job_definition *asked, struct fly_error *out_error);

/*
 * A job's definition as JSON (shapes.h), as in the log, and back. Members that are SPARING in
 * <flyball/job_definition.def> are present only when there is one, `policy` when one is named (on record
 * always), `auto_policy_version` when nobody had named it. A max_slowdown or beta of null is infinite;
 * target_metric is null without a target.
 */

/*
 * The definition as it is written: without a target the target's metric means nothing, and becomes unknown.
 * Borrows.
 */
struct fly_job_definition definition_on_record(const struct fly_job_definition *definition);

/* Returns a new reference, or NULL when memory is exhausted or a text is not UTF-8. */
json_t *definition_to_json(const struct fly_job_definition *definition);

/*
 * Reads a definition on record; texts and lists go into `arena`.
 * Returns FLY_EDATA or FLY_ELIMIT for another form;
 * job_definition_check checks the rest.
 */
int definition_from_json(json_t *json, struct arena *arena, struct fly_job_definition *out_definition,
                         struct fly_error *out_error);

json_t *objective_to_json(const struct fly_objective *objective);

/*
 * Returns FLY_ECONFLICT with the fields in which the two differ, 0 when they are the same. `policy` is the
 * one that holds now, which a user may have set since. What is not named, policy or objective, is no
 * difference.
 */
int definition_compare(const struct fly_job_definition *registered, const char *policy,
                       const struct fly_job_definition *now, struct fly_error *out_error);

#endif

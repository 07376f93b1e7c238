/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_DEFINITION_H
#define FLYBALL_JOB_CORE_DEFINITION_H

#include "job/core/job.h"

/* The default definition of a job, and the checks of one (struct job_definition in job.h). */

/*
 * Return FLY_EUSAGE for an objective that needs figures that the job's grid does not have, and for a bound or
 * controls of a job without a default.
 */
int definition_allows(const struct job_definition *definition, const struct fly_objective *objective,
                      struct fly_error *out_error);
int definition_allows_controls(const struct job_definition *definition, uint32_t control_every,
                               struct fly_error *out_error);

/* What is meant by an objective of which not all is named, and of a new job that is defined so. */
struct fly_objective objective_settled(const struct fly_objective *named);
struct fly_objective definition_objective(const struct job_definition *definition);

/*
 * No objective named, beta 2, no target, no policy named, two rounds and two explorations, no
 * max_metric_loss; the rest is zero.
 */
extern const struct job_definition job_definition_default;

/* The word for a policy that is not named. */
#define JOB_POLICY_AUTO "auto"

/* The share of an epoch that a live power profile takes, until one is known in steps. */
#define JOB_PROFILE_WINDOW 0.1

/* Whether the definition names a policy; one on record always does. */
bool definition_names_policy(const struct job_definition *definition);

/* The policy that holds now. */
const char *job_shown_policy(const struct job_shown *shown);

/* Whether a job may have that name. */
bool job_name_fits(const char *name);

/* Returns FLY_EUSAGE or FLY_ELIMIT with the field. `define` calls it too. */
int job_definition_check(const struct job_definition *asked, struct fly_error *out_error);

#endif

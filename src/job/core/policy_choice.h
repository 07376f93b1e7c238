/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_POLICY_CHOICE_H
#define FLYBALL_JOB_CORE_POLICY_CHOICE_H

#include <flyball/error.h>

#include "job/core/job.h"
#include "policy/batch_policy.h"

/* Which policies live jobs may have. */

/*
 * The policy of a new job that names none: `bayes`, or `zeus` for more batch sizes than `bayes` takes.
 */
const struct batch_policy *job_policy_auto(const struct job_definition *definition);

/* The policy of that name among the built-in ones and `plugins` (NULL, or ended by NULL); NULL: none. */
const struct batch_policy *job_policy_find(const char *name, const struct batch_policy *const *plugins);

/* Returns FLY_EUSAGE if the policy does not take as many batch sizes as the job has. */
int job_policy_takes(const struct batch_policy *policy, const struct job_definition *definition,
                     struct fly_error *out_error);

/*
 * Returns FLY_EUSAGE if a new job has a window or is to learn from another job, and its policy heeds that
 * not.
 */
int job_policy_heeds(const struct batch_policy *policy, const struct job_definition *definition,
                     struct fly_error *out_error);

/*
 * Checks that a job may be defined with that policy: a built-in one, or one of `plugins` (NULL, or ended by
 * NULL), or by `auto`. Returns FLY_EUSAGE with all names and the nearest one. `define` calls it too; a
 * program calls it before it starts a training that would go untuned. A job on record may have a policy that
 * only a newer service knows.
 */
int job_policy_check(const char *job, const char *policy, const struct batch_policy *const *plugins,
                     struct fly_error *out_error);

#endif

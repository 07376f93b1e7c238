/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_POLICY_CHOICE_H
#define FLYBALL_JOB_CORE_POLICY_CHOICE_H

#include <stdbool.h>

#include <flyball/error.h>

#include "job/core/job.h"
#include "policy/batch_policy.h"
#include "policy/plugin_batch_policy.h"

/* Which policies live jobs may have. */

/*
 * The policy of a new job that names none: `bayes`, or `zeus` for more batch sizes than `bayes` takes.
 */
const struct batch_policy *job_policy_auto(const struct fly_job_definition *definition);

/* The policy of that name among the built-in ones and `plugins` (NULL, or ended by NULL); NULL: none. */
const struct batch_policy *job_policy_find(const char *name, const struct batch_policy *const *plugins);

/* Returns FLY_EUSAGE if the policy does not take as many batch sizes as the job has. */
int job_policy_takes(const struct batch_policy *policy, const struct fly_job_definition *definition,
                     struct fly_error *out_error);

/*
 * Returns FLY_EUSAGE if a new job has a window or is to learn from another job, and its policy heeds that
 * not.
 */
int job_policy_heeds(const struct batch_policy *policy, const struct fly_job_definition *definition,
                     struct fly_error *out_error);

/*
 * Checks that a job may be defined with that policy: a built-in one, or one of `plugins` (NULL, or ended by
 * NULL), or by `auto`. Returns FLY_EUSAGE with all names and the nearest one. `define` calls it too; a
 * program calls it before it starts a training that would go untuned. A job on record may have a policy that
 * only a newer service knows.
 */
int job_policy_check(const char *job, const char *policy, const struct batch_policy *const *plugins,
                     struct fly_error *out_error);

/*
 * The user's own batch-size policies for live jobs: shared objects whose paths are in the variable
 * FLYBALL_PLUGINS, separated by colons. The process that keeps a job's log loads them: a command or a session
 * with a store of its own, or a service, whose operator sets the variable. No client, no job and no
 * configuration file of a directory can name code.
 */
#define POLICY_PLUGINS_VARIABLE "FLYBALL_PLUGINS"

enum { POLICY_PLUGINS_MAX = 16 };

struct policy_plugins {
    size_t count;
    struct plugin_batch_policy opened[POLICY_PLUGINS_MAX];
    const struct batch_policy *list[POLICY_PLUGINS_MAX + 1]; /* ended by NULL; points into the struct */
};

/*
 * Loads the plug-ins. Errors as plugin_open; FLY_EDATA for a name that is taken, FLY_ELIMIT for too many.
 * Call policy_plugins_close only after success, and do not move the struct until then.
 */
int policy_plugins_open(struct policy_plugins *out_plugins, struct fly_error *out_error);
void policy_plugins_close(struct policy_plugins *plugins);

/* Whether the text is a path: it has a slash, or ends in ".so", as for `flyball sim job`. */
bool policy_plugins_is_path(const char *policy);

/*
 * For a program that got the path on its command line: puts the full path in front of the variable, for
 * itself and the programs that it starts. `out_name` is the name of its policy, valid until close.
 */
int policy_plugins_add(const char *path, struct policy_plugins *out_plugins, const char **out_name,
                       struct fly_error *out_error);

#endif

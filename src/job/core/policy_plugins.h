/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_POLICY_PLUGINS_H
#define FLYBALL_JOB_CORE_POLICY_PLUGINS_H

#include <stdbool.h>

#include "policy/plugin_batch_policy.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_POLICY_PLUGINS_H
#define FLYBALL_JOB_CORE_POLICY_PLUGINS_H

#include <stdbool.h>

#include "policy/plugin_batch_policy.h"

/*
 * Batch-size policies of the user's for live jobs: the shared objects whose paths stand in the
 * variable FLYBALL_PLUGINS, with colons between them. Whoever keeps a job's log loads them: a command or a
 * session over a store of its own, or a service, whose operator sets the variable. No
 * client, no job and no configuration file of a directory names code.
 */
#define POLICY_PLUGINS_VARIABLE "FLYBALL_PLUGINS"

enum { POLICY_PLUGINS_MAX = 16 };

struct policy_plugins {
    size_t count;
    struct plugin_batch_policy opened[POLICY_PLUGINS_MAX];
    const struct batch_policy *list[POLICY_PLUGINS_MAX + 1]; /* ended by NULL; points into the struct */
};

/*
 * Errors as plugin_open; FLY_EDATA for a name that is taken, FLY_ELIMIT for too many. Needs
 * policy_plugins_close after success alone; may not be moved until then.
 */
int policy_plugins_open(struct policy_plugins *out_plugins, struct fly_error *out_error);
void policy_plugins_close(struct policy_plugins *plugins);

/* Whether it is one: with a slash, or ending in ".so", as for `flyball sim job`. */
bool policy_plugins_is_path(const char *policy);

/*
 * For a program with the path on its command line: puts it in front of the variable, whole, for itself
 * and the programs that it starts. `out_name` is that of its policy, until close.
 */
int policy_plugins_add(const char *path, struct policy_plugins *out_plugins, const char **out_name,
                       struct fly_error *out_error);

#endif

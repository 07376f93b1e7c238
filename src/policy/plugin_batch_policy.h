/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PLUGIN_BATCH_POLICY_H
#define FLYBALL_POLICY_PLUGIN_BATCH_POLICY_H

#include <flyball/plugin.h>

#include "policy/batch_policy.h"
#include "policy/plugin.h"

/*
 * A user's batch-size policy from a shared object. Each answer is checked; an invalid one gives
 * FLY_EDATA and an error that names the plug-in. Every question is asked twice, because a policy
 * that gives two different answers could not be replayed.
 */
struct plugin_batch_policy {
    struct batch_policy policy; /* first member, so that create finds the rest */
    struct plugin plugin;
    const struct fly_batch_policy *table; /* of the plug-in */
    void *data;                           /* passed on to it with each job */
};

/* Errors as plugin_open. Needs plugin_batch_policy_close only after success. */
int plugin_batch_policy_open(const char *path, struct plugin_batch_policy *out_policy,
                             struct fly_error *out_error);

/*
 * Takes a table of the program's own, which stays until the policy is closed, in place of a shared object's.
 * FLY_EUNSUPPORTED for another interface version, FLY_EDATA for an unusable name or a table without a
 * function that it must have, FLY_ENOMEM.
 */
int plugin_batch_policy_of(const struct fly_batch_policy *table, void *data,
                           struct plugin_batch_policy *out_policy, struct fly_error *out_error);

/* Call it only when no state of the policy is left. Harmless on a zeroed struct. */
void plugin_batch_policy_close(struct plugin_batch_policy *policy);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PLUGIN_BATCH_POLICY_H
#define FLYBALL_POLICY_PLUGIN_BATCH_POLICY_H

#include <flyball/plugin.h>

#include "policy/batch_policy.h"
#include "policy/plugin.h"

/*
 * A batch-size policy of the user's, from a shared object. Each of its answers
 * is checked; one that does not fit is FLY_EDATA and names the plug-in. Every
 * question is asked twice, since a policy that answers it in two ways could not
 * be replayed.
 */
struct plugin_batch_policy {
    struct batch_policy policy; /* first, so that create finds the rest */
    struct plugin plugin;
    const struct fly_batch_policy *table; /* the plug-in's */
};

/* Errors as plugin_open. Needs plugin_batch_policy_close only after success. */
int plugin_batch_policy_open(const char *path, struct plugin_batch_policy *out_policy,
                             struct fly_error *out_error);

/* No state of the policy may be left. Harmless on a zeroed struct. */
void plugin_batch_policy_close(struct plugin_batch_policy *policy);

#endif

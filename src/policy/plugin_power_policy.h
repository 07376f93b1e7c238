/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PLUGIN_POWER_POLICY_H
#define FLYBALL_POLICY_PLUGIN_POWER_POLICY_H

#include <flyball/plugin.h>

#include "policy/plugin.h"
#include "policy/power_policy.h"

/* A user's power-limit policy from a shared object. Its choices are checked. */
struct plugin_power_policy {
    struct power_policy policy; /* first member, so that its functions find the rest */
    struct plugin plugin;
    const struct fly_power_policy *table; /* of the plug-in */
};

/* Errors as plugin_open. Needs plugin_power_policy_close only after success. */
int plugin_power_policy_open(const char *path, struct plugin_power_policy *out_policy,
                             struct fly_error *out_error);

/* Call it only when nothing uses the policy any more. Harmless on a zeroed struct. */
void plugin_power_policy_close(struct plugin_power_policy *policy);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_PLUGINS_H
#define FLYBALL_CLI_SIM_SIM_PLUGINS_H

#include "cli/frame/call.h"
#include "policy/plugin_batch_policy.h"
#include "policy/plugin_power_policy.h"

/*
 * The policies that a call loads from shared objects: those of --policy that are paths, and that
 * of --power-policy. While any is open, a message names the plug-in if the program ends inside
 * one of its functions (cli/sim/plugin_crash.h).
 */
struct sim_plugins {
    size_t batch_count;
    struct plugin_batch_policy batch[CLI_LIST_MAX]; /* in the order of --policy */
    bool has_power;
    struct plugin_power_policy power;
};

/*
 * Loads and checks them. `known` are the words of --policy, ended by NULL, which no plug-in may
 * take as its name. Errors as plugin_open; FLY_EDATA for a name that is taken; FLY_ECONFIG for a
 * path from a configuration file, which might come from a directory that somebody else has
 * filled. Call sim_plugins_close only after success.
 */
int sim_plugins_open(struct sim_plugins *plugins, const struct cli_call *call, const char *const *known,
                     struct fly_error *out_error);

void sim_plugins_close(struct sim_plugins *plugins);

/* Returns the chosen power-limit policy, or NULL for the built-in one. */
const struct power_policy *sim_plugins_power(const struct sim_plugins *plugins);

#endif

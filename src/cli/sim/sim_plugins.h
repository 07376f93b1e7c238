/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_PLUGINS_H
#define FLYBALL_CLI_SIM_SIM_PLUGINS_H

#include "cli/frame/call.h"
#include "policy/plugin_batch_policy.h"
#include "policy/plugin_power_policy.h"

/*
 * The policies that a call brings along as shared objects: those of --policy
 * that are paths, and that of --power-policy. While any is open, the end of the
 * program in one of its functions names it (cli/sim/plugin_crash.h).
 */
struct sim_plugins {
    size_t batch_count;
    struct plugin_batch_policy batch[CLI_LIST_MAX]; /* in the order of --policy */
    bool has_power;
    struct plugin_power_policy power;
};

/*
 * Loads and checks them; `known` are the words of --policy, which no plug-in may
 * take as its name, ended by NULL. Errors as plugin_open; FLY_EDATA for a name that is
 * taken, FLY_ECONFIG for a path from a configuration file, which could be that
 * of a directory somebody else has filled. Needs sim_plugins_close only after
 * success.
 */
int sim_plugins_open(struct sim_plugins *plugins, const struct cli_call *call, const char *const *known,
                     struct fly_error *out_error);

void sim_plugins_close(struct sim_plugins *plugins);

/* The chosen power-limit policy, or NULL for the built-in one. */
const struct power_policy *sim_plugins_power(const struct sim_plugins *plugins);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_POLICIES_H
#define FLYBALL_CLI_SIM_SIM_POLICIES_H

#include "cli/frame/call.h"
#include "cli/sim/sim_plugins.h"
#include "sim/campaign.h"

/*
 * Which policies a simulation command compares, and how they search
 * (cli/sim/sim_options.h).
 */
enum { SIM_POLICIES_MAX = CLI_LIST_MAX + 2 };

struct sim_policies {
    struct sim_plugins plugins;
    struct campaign_policy items[SIM_POLICIES_MAX];
    size_t count;
    double profile_window; /* as in policy_parameters */
};

/*
 * Opens the policies of --policy, including plug-ins, then default and oracle if they were not
 * asked for. Call sim_policies_close only after success.
 */
int sim_policies_open(struct sim_policies *policies, const struct cli_call *call,
                      struct fly_error *out_error);
void sim_policies_close(struct sim_policies *policies);

/* Returns the parameters from --beta, --window, --generator, --profile-window and --power-policy. */
struct policy_parameters sim_policy_parameters(const struct sim_policies *policies,
                                               const struct cli_call *call);

extern const char *const sim_policy_names[];
extern const char *const sim_generator_names[];
extern const char *const sim_guard_names[];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_POLICY_OPTIONS_H
#define FLYBALL_CLI_SIM_POLICY_OPTIONS_H

#include "cli/frame/call.h"
#include "sim/open/sim_policies.h"

/*
 * Opens the policies of --policy and --power-policy, including plug-ins, then default and oracle if they were
 * not asked for; and reads how they search: --beta, --window, --generator, --guard and --profile-window.
 * While a plug-in is open, a message names it if the program ends inside one of its functions
 * (cli/sim/plugin_crash.h). Errors as sim_policies_add_plugin; FLY_ECONFIG for a path from a configuration
 * file, which might come from a directory that somebody else has filled; FLY_EUSAGE. Call sim_policies_close
 * only after success.
 */
int policy_options_open(struct sim_policies *policies, struct policy_parameters *out_parameters,
                        const struct cli_call *call, struct fly_error *out_error);

#endif

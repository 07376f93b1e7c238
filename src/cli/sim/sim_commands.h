/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_COMMANDS_H
#define FLYBALL_CLI_SIM_SIM_COMMANDS_H

#include "cli/frame/command.h"

/* The commands sim, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_sim_carbon;
extern const struct cli_command cmd_sim_compare;
extern const struct cli_command cmd_sim_group;
extern const struct cli_command cmd_sim_job;
extern const struct cli_command cmd_sim_make_groups;
extern const struct cli_command cmd_sim_make_trace;
extern const struct cli_command cmd_sim_pareto;
extern const struct cli_command cmd_sim_replay;

#endif

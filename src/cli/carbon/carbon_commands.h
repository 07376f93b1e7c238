/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_CARBON_COMMANDS_H
#define FLYBALL_CLI_CARBON_CARBON_COMMANDS_H

#include "cli/frame/command.h"

/* The commands carbon, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_carbon_forecast;
extern const struct cli_command cmd_carbon_history;
extern const struct cli_command cmd_carbon_now;
extern const struct cli_command cmd_carbon_plan;
extern const struct cli_command cmd_carbon_report;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_COMMANDS_H
#define FLYBALL_CLI_POWER_POWER_COMMANDS_H

#include "cli/frame/command.h"

/* The commands power, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_power_get;
extern const struct cli_command cmd_power_reset;
extern const struct cli_command cmd_power_restore;
extern const struct cli_command cmd_power_set;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_TOP_TOP_COMMANDS_H
#define FLYBALL_CLI_TOP_TOP_COMMANDS_H

#include "cli/frame/command.h"

/* The command top; cli/commands.c lists all. */
extern const struct cli_command cmd_top;

#endif

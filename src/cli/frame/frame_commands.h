/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_FRAME_COMMANDS_H
#define FLYBALL_CLI_FRAME_FRAME_COMMANDS_H

#include "cli/frame/command.h"

/* The commands config, help and version, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_config_show;
extern const struct cli_command cmd_help;
extern const struct cli_command cmd_version;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_DEMO_DEMO_COMMANDS_H
#define FLYBALL_CLI_DEMO_DEMO_COMMANDS_H

#include "cli/frame/command.h"

/* The commands demo, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_demo;

#endif

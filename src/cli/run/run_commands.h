/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_COMMANDS_H
#define FLYBALL_CLI_RUN_RUN_COMMANDS_H

#include "cli/frame/command.h"

/* The commands demo, run, profile and tally, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_demo;
extern const struct cli_command cmd_profile;
extern const struct cli_command cmd_run;
extern const struct cli_command cmd_tally;

#endif

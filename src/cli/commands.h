/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_COMMANDS_H
#define FLYBALL_CLI_COMMANDS_H

#include "cli/frame/command.h"

/* The program flyball: every command, in the order in which help lists them. */
extern const struct cli_program flyball_program;

#endif

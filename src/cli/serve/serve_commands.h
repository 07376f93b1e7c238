/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SERVE_SERVE_COMMANDS_H
#define FLYBALL_CLI_SERVE_SERVE_COMMANDS_H

#include "cli/frame/command.h"

/* The commands serve, token and token issue, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_serve;
extern const struct cli_command cmd_token;
extern const struct cli_command cmd_token_issue;

#endif

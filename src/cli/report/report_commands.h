/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_COMMANDS_H
#define FLYBALL_CLI_REPORT_REPORT_COMMANDS_H

#include "cli/frame/command.h"

/* The commands report, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_report;

#endif

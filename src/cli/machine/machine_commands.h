/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_MACHINE_COMMANDS_H
#define FLYBALL_CLI_MACHINE_MACHINE_COMMANDS_H

#include "cli/frame/command.h"

/*
 * The commands devices, doctor, monitor, record and selftest, each in its own file;
 * cli/commands.c lists them all.
 */
extern const struct cli_command cmd_devices;
extern const struct cli_command cmd_doctor;
extern const struct cli_command cmd_monitor;
extern const struct cli_command cmd_record;
extern const struct cli_command cmd_selftest;

#endif

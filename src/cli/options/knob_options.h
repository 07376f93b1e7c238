/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_KNOB_OPTIONS_H
#define FLYBALL_CLI_OPTIONS_KNOB_OPTIONS_H

#include "cli/frame/call.h"
#include "knob/knob.h"

enum { CLI_READONLY_MAX = 512 };

/*
 * What knob_open and knob_repair take, for any command with DEVICE_OPTIONS: the driver's
 * library, and the operator's lock, which lies where --sysfs-root says that this machine
 * is, or where it always lies. `program` is how others call this one. Borrows it, the
 * call and `readonly_path`.
 */
struct knob_options cli_knob_options(const struct cli_call *call, const char *program,
                                     char readonly_path[CLI_READONLY_MAX]);

#endif

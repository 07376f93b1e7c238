/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_KNOB_OPTIONS_H
#define FLYBALL_CLI_OPTIONS_KNOB_OPTIONS_H

#include "cli/frame/call.h"
#include "knob/knob.h"

enum { CLI_READONLY_MAX = 512 };

/*
 * Returns the options of knob_open and knob_repair for any command with DEVICE_OPTIONS: the
 * driver's library, and the path of the operator's lock: under --sysfs-root if it exists there,
 * else at its usual place. `program` is the name that others see for this program. Borrows it,
 * the call and `readonly_path`.
 */
struct knob_options cli_knob_options(const struct cli_call *call, const char *program,
                                     char readonly_path[CLI_READONLY_MAX]);

#endif

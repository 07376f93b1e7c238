/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_AROUND_H
#define FLYBALL_CLI_POWER_POWER_AROUND_H

#include "cli/power/power_turning.h"

/*
 * Runs the call's program with its limits set, and restores them when it has ended. The exit
 * status is the program's. If the limits cannot be set, it warns and runs the program anyway.
 * With --require, or for a limit outside a GPU's range, it does not run the program and returns
 * the code. `turning` is the caller's storage.
 */
int power_around(const struct cli_call *call, const struct power_request *request,
                 struct power_turning *turning, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_AROUND_H
#define FLYBALL_CLI_POWER_POWER_AROUND_H

#include "cli/power/power_turning.h"

/*
 * Runs the call's program with its limits set, and turns back when it has ended; the
 * exit status is the program's. What keeps the limits from being set is a warning, and
 * the program runs; with --require, and for a limit outside of a GPU's range, it does
 * not, and the code is returned. `turning` is the caller's storage.
 */
int power_around(const struct cli_call *call, const struct power_wish *wish, struct power_turning *turning,
                 struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_KILL_H
#define FLYBALL_CLI_MACHINE_SELFTEST_KILL_H

#include "cli/frame/call.h"
#include "cli/program/stop_signals.h"
#include "meter/selftest/selftest.h"

/*
 * Starts `flyball power set` on the GPUs whose turnings are `tried`, kills it with SIGKILL when
 * their limits are set, and watches whether they return. Fills in the results' turnings; never
 * fails, and says why something could not be tried. Nobody else may hold their knobs meanwhile.
 */
void selftest_kill(const struct cli_call *call, const struct device_list *devices,
                   struct selftest_result *results, struct stop_signals *stop);

#endif

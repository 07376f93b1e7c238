/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_KNOBS_H
#define FLYBALL_CLI_MACHINE_SELFTEST_KNOBS_H

#include "cli/frame/call.h"
#include "cli/machine/selftest_load.h"
#include "cli/program/stop_signals.h"
#include "meter/selftest/selftest.h"

/*
 * `flyball selftest --turn-knobs`: tests the power limits of the GPUs that may be set, under a
 * load, and whether they return when their holder is killed. All limits are restored when it
 * returns, whatever its result; if the process is killed, its guard restores them as for any
 * session.
 */
struct selftest_knobs {
    const struct cli_call *call;
    struct device_list *devices;
    struct selftest_result *results; /* their turnings are filled in */
    struct stop_signals *stop;
    struct selftest_load_options load;
    double duration_s; /* of the window at each level, as in the other stages */
    double poll_s;
};

/* Runs the test. GPUs that may not be set say why. FLY_ENOMEM; FLY_ESTATE if a signal ended it. */
int selftest_knobs_run(const struct selftest_knobs *knobs, struct fly_error *out_error);

#endif

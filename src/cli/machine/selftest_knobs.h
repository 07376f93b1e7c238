/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_KNOBS_H
#define FLYBALL_CLI_MACHINE_SELFTEST_KNOBS_H

#include "cli/frame/call.h"
#include "cli/machine/selftest_load.h"
#include "cli/program/stop_signals.h"
#include "meter/selftest/selftest.h"

/*
 * `flyball selftest --turn-knobs`: the power limits of the GPUs that may be turned, under a
 * load, and whether they come back when their holder is killed. Everything is turned back when
 * it returns, however it ends; a process that is killed in it has a guard as any session.
 */
struct selftest_knobs {
    const struct cli_call *call;
    struct device_list *devices;
    struct selftest_result *results; /* their turnings are filled in */
    struct stop_signals *stop;
    struct selftest_load_options load;
    double duration_s; /* of a level's window, as of the other stages */
    double poll_s;
};

/* GPUs that may not be turned say why. FLY_ENOMEM, and FLY_ESTATE when a signal ended it. */
int selftest_knobs_run(const struct selftest_knobs *knobs, struct fly_error *out_error);

#endif

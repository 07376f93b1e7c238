/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_CLI_H
#define FLYBALL_CLI_MACHINE_SELFTEST_CLI_H

#include <jansson.h>

#include "cli/frame/call.h"
#include "cli/program/child.h"
#include "device/nvidia/cuda_load.h"
#include "meter/selftest/selftest.h"

/*
 * The load that `flyball selftest` puts on each device: on NVIDIA's GPUs a kernel through CUDA's
 * driver; on all others whatever runs there already.
 */
struct selftest_load {
    bool started;                  /* our own load ran on the device */
    char text[FLY_ERROR_TEXT_MAX]; /* why it did not run, or why it ended early; "" if neither */
    struct cuda_load load;
};

/* One call of `flyball selftest`. */
struct selftest {
    const struct cli_call *call;
    double duration_s; /* of a stage, and at each limit */
    double poll_s;
    struct stop_signals stop;
    struct device_list devices;
    struct selftest_result results[DEVICES_MAX];
    struct selftest_load loads[DEVICES_MAX]; /* of the loaded stage */
    struct wall_time date;
};

/*
 * Starts a load on each device, or on those `chosen` (NULL: all); `loads` must be zeroed. Never
 * fails: each load says why it did not start.
 */
void selftest_loads_start(const struct selftest *test, const bool *chosen, double duration_max_s,
                          struct selftest_load *loads);

/* Ends the loads that run. May be called twice. */
void selftest_loads_stop(const struct selftest *test, struct selftest_load *loads);

/*
 * `flyball selftest --turn-knobs`: tests the power limits of the GPUs that may be set, under a
 * load, and whether they return when their holder is killed. All limits are restored when it
 * returns, whatever its result; if the process is killed, its guard restores them as for any
 * session. GPUs that may not be set say why. FLY_ENOMEM; FLY_ESTATE if a signal ended it.
 */
int selftest_knobs_run(struct selftest *test, struct fly_error *out_error);

/*
 * Returns the document "flyball.selftest/1", which names neither the host nor the cards. NULL
 * without memory.
 */
json_t *selftest_report_json(const struct selftest *test);

/* Prints latencies, updates, windows and findings on stdout. */
int selftest_report_text(const struct selftest *test, struct fly_error *out_error);

extern const struct quantities selftest_quantities;

/* Prints a row for each finding on stdout. */
int selftest_report_csv(const struct selftest *test, struct fly_error *out_error);

#endif

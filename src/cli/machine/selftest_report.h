/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_SELFTEST_REPORT_H
#define FLYBALL_CLI_MACHINE_SELFTEST_REPORT_H

#include <jansson.h>

#include "cli/frame/call.h"
#include "cli/machine/selftest_load.h"
#include "meter/selftest/selftest.h"

/* The result of `flyball selftest`, for people and for programs. Everything is borrowed. */
struct selftest_report {
    const struct device_list *devices;
    const struct selftest_result *results; /* one for each device, and so are the loads */
    const struct selftest_load *loads;
    struct wall_time date;
    double duration_s; /* of a stage */
};

/*
 * Returns the document "flyball.selftest/1", which names neither the host nor the cards. NULL
 * without memory.
 */
json_t *selftest_report_json(const struct selftest_report *report);

/* Prints latencies, updates, windows and findings on stdout. */
int selftest_report_text(const struct cli_call *call, const struct selftest_report *report,
                         struct fly_error *out_error);

extern const struct quantities selftest_quantities;

/* Prints a row for each finding on stdout. */
int selftest_report_csv(const struct cli_call *call, const struct selftest_report *report,
                        struct fly_error *out_error);

#endif

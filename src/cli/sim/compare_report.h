/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_COMPARE_REPORT_H
#define FLYBALL_CLI_SIM_COMPARE_REPORT_H

#include "cli/frame/call.h"
#include "sim/open/compare_rows.h"

/*
 * The table: one row for every scenario, set of jobs, horizon and policy. People get the figures
 * that decide; programs get all of them.
 *
 *     compare_report_begin(&report, call);
 *     ... compare_report_add after each scenario, whose run may then be freed ...
 *     compare_report_emit(&report, &plan, rival, seeds, out_error);
 *     compare_report_end(&report);
 */
struct compare_report {
    const struct cli_call *call;
    struct table *table;
};

void compare_report_begin(struct compare_report *report, const struct cli_call *call);
void compare_report_end(struct compare_report *report);

int compare_report_add(struct compare_report *report, const struct compare_run *run,
                       struct fly_error *out_error);

/* Prints it. The plan is that of any scenario; `seeds` are as they were written. */
int compare_report_emit(struct compare_report *report, const struct campaign_plan *plan, size_t rival,
                        const char *seeds, struct fly_error *out_error);

#endif

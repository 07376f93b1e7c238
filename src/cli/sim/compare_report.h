/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_COMPARE_REPORT_H
#define FLYBALL_CLI_SIM_COMPARE_REPORT_H

#include "cli/frame/call.h"
#include "cli/sim/compare_jobs.h"
#include "sim/campaign.h"

extern const struct quantities compare_report_quantities;

/* What `flyball sim compare` ran. */
struct compare_run {
    const struct campaign_plan *plan; /* with horizons */
    const struct campaign *campaign;
    const char *seeds; /* as they were written */
    const struct compare_set *sets;
    size_t set_count;
    size_t rival;    /* index of the policy that the others are compared with */
    size_t standard; /* index of the default */
};

/*
 * Prints one row for every set of jobs, horizon and policy. People get the figures that decide;
 * programs get all of them.
 */
int compare_report_emit(const struct cli_call *call, const struct compare_run *run,
                        struct fly_error *out_error);

#endif

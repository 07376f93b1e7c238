/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_REPORT_H
#define FLYBALL_CLI_SIM_SIM_REPORT_H

#include "cli/frame/call.h"
#include "sim/bootstrap.h"
#include "sim/campaign.h"

/*
 * Prints the result of `flyball sim job`. People get a few lines for each workload and policy.
 * Programs get one row each, with every figure's mean, standard error, p10 and p90 over the
 * seeds, and the standard error due to the few recorded runs (`replicates` of the bootstrap; 0:
 * none were run). Figures cover the runs that completed; if some ended early, the report says how
 * many and why.
 */
int sim_report_emit(const struct cli_call *call, const struct campaign_plan *plan,
                    const struct campaign *campaign, const struct bootstrap *bootstrap, unsigned replicates,
                    struct fly_error *out_error);

#endif

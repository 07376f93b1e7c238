/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_GROUP_REPORT_H
#define FLYBALL_CLI_SIM_GROUP_REPORT_H

#include "cli/frame/call.h"
#include "sim/group_campaign.h"

extern const struct quantities group_report_quantities;

/*
 * Prints the result of `flyball sim group`: a row for each workload and policy, and one for all
 * workloads together. Changes compare the sums over all groups with those of the default. Only
 * groups that both completed count; the others are counted separately.
 */
int group_report_emit(const struct cli_call *call, const struct group_plan *plan, size_t workload_count,
                      const struct group_result *results, struct fly_error *out_error);

#endif

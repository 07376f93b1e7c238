/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_PLOT_H
#define FLYBALL_CLI_SIM_SIM_PLOT_H

#include "base/atomic_file.h"
#include "sim/campaign.h"

/*
 * The picture of `flyball sim job`: for each workload the cumulative regret
 * over its recurrences (mean over the seeds, with a band from p10 to p90), and
 * below it the batch size and power limit that were chosen with the first seed.
 * Of the policies asked for, and the default's regret beside them.
 *
 * As in the report, only runs that went to their end enter a mean.
 */

/* Draws a campaign that was run with curves; commits or discards the file. */
int sim_plot_commit(const struct campaign_plan *plan, const struct campaign *campaign,
                    struct atomic_file *file, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_PLOT_H
#define FLYBALL_CLI_SIM_SIM_PLOT_H

#include "base/file/atomic_file.h"
#include "sim/campaign.h"

/*
 * The picture of `flyball sim job`. For each workload it shows the cumulative regret over the
 * recurrences (mean over the seeds, with a band from p10 to p90), and below it the batch size and
 * power limit that were chosen with the first seed. It shows the policies that were asked for,
 * and beside them the default's regret. As in the report, means include only runs that completed.
 */

/* Draws a campaign that was run with curves. Commits or discards the file. */
int sim_plot_commit(const struct campaign_plan *plan, const struct campaign *campaign,
                    struct atomic_file *file, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_PLOT_H
#define FLYBALL_CLI_SIM_SIM_PLOT_H

#include "cli/kit/picture.h"
#include "cli/sim/compare_report.h"
#include "sim/campaign.h"

/*
 * The picture of `flyball sim job`. For each workload it shows the cumulative regret over the
 * recurrences (mean over the seeds, with a band from p10 to p90), and below it the batch size and
 * power limit that were chosen with the first seed. It shows the policies that were asked for,
 * and beside them the default's regret. As in the report, means include only runs that completed.
 *
 * Draws a campaign that was run with curves. Commits or discards the file.
 */
int sim_plot_commit(const struct campaign_plan *plan, const struct campaign *campaign,
                    struct atomic_file *file, struct fly_error *out_error);

/*
 * The picture of `flyball sim compare`: three panels for the jobs of the traces, and three for the
 * synthetic ones, in each scenario.
 *
 *     regret so far    over the recurrences: mean over the jobs, and the band from there to the p90 of
 *                      all runs
 *     ratio per job    mean regret relative to that of the policy compared with, at the last horizon,
 *                      as bars from 1 with 95 % intervals
 *     worst runs       the regret of the worst runs at the last horizon, the worst first
 *
 *     compare_plot_begin(&plot);
 *     ... compare_plot_add after each scenario, whose run may then be freed ...
 *     compare_plot_commit(&plot, &file, out_error), or picture_drop(&plot.picture)
 *
 * The default is drawn in the first panel only, and the oracle in none. Of very many scenarios the last are
 * left out.
 */
struct compare_plot {
    struct picture picture;
    size_t panel_count;
};

void compare_plot_begin(struct compare_plot *plot);
int compare_plot_add(struct compare_plot *plot, const struct compare_run *run, struct fly_error *out_error);

/* Draws what was added. Commits or discards the file. */
int compare_plot_commit(struct compare_plot *plot, struct atomic_file *file, struct fly_error *out_error);

#endif

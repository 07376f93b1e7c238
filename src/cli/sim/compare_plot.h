/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_COMPARE_PLOT_H
#define FLYBALL_CLI_SIM_COMPARE_PLOT_H

#include "base/arena.h"
#include "base/file/atomic_file.h"
#include "cli/kit/chart.h"
#include "cli/sim/compare_report.h"

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
 *     compare_plot_commit(&plot, &file, out_error);
 *     compare_plot_end(&plot);
 *
 * The default is drawn in the first panel only, and the oracle in none.
 */
enum { COMPARE_PANELS_MAX = 128 };

struct compare_plot {
    struct arena arena; /* owns every list */
    struct chart_panel panels[COMPARE_PANELS_MAX];
    size_t panel_count;
};

void compare_plot_begin(struct compare_plot *plot);
void compare_plot_end(struct compare_plot *plot);

int compare_plot_add(struct compare_plot *plot, const struct compare_run *run, struct fly_error *out_error);

/* Draws what was added. Commits or discards the file. */
int compare_plot_commit(const struct compare_plot *plot, struct atomic_file *file,
                        struct fly_error *out_error);

#endif

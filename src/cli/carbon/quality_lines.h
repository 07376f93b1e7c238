/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_QUALITY_LINES_H
#define FLYBALL_CLI_CARBON_QUALITY_LINES_H

#include "base/arena.h"
#include "cli/kit/chart.h"
#include "model/grid_series.h"

/*
 * Figures of the grid over time as lines of a chart: one for each quality. A line breaks where
 * the figure has another quality; unknown figures are not drawn.
 */
struct quality_lines {
    struct chart_series series[GRID_UNKNOWN];
    size_t count;
};

/* Makes the lines, in hours since `zero_s`; `periods` are in their order. FLY_ENOMEM. */
int quality_lines_make(const struct grid_period *periods, size_t count, int64_t zero_s, struct arena *arena,
                       struct quality_lines *out_lines, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_CHART_PLOT_H
#define FLYBALL_CLI_KIT_CHART_PLOT_H

#include "cli/kit/chart.h"

/* Parts of chart.c: draws the inside of a panel once its place is known. */
struct plot {
    const struct chart_panel *panel;
    double left, top, right, bottom; /* px */
    double width;                    /* of the picture */
    struct axis_range x, y;
};

/* Returns whether point `i` of a series can be shown in the panel. */
bool plot_shows(const struct chart_panel *panel, const struct chart_series *series, size_t i);

void plot_draw_series(const struct plot *plot, struct buffer *out);

/* Draws labels beside their points, each where it covers the fewest points and no other label. */
void plot_draw_notes(const struct plot *plot, struct buffer *out);

#endif

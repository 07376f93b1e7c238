/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_CHART_DOTS_H
#define FLYBALL_CLI_KIT_CHART_DOTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "cli/kit/chart.h"

/*
 * What pictures of costs are made of: points that are added one by one, in a unit that suits them.
 *
 *     struct chart_unit unit = chart_unit_for(chart_energy_units, typical_j);
 *     if (!chart_dots_init(&dots, arena, most))
 *         return error_no_memory(out_error);
 *     chart_dots_add(&dots, batch_size, energy_j / unit.size, NULL);
 *     series[0] = chart_dots_series(&dots, "trials", CHART_POINTS, SVG_GREEN, SVG_CIRCLE, 0);
 */

/* A unit of an axis. */
struct chart_unit {
    const char *name;
    double size; /* in the unit of the values */
};
enum { CHART_UNIT_COUNT = 4 };
extern const struct chart_unit chart_time_units[CHART_UNIT_COUNT], chart_energy_units[CHART_UNIT_COUNT];

/* Returns the largest of the CHART_UNIT_COUNT units in which the value is at least one, else the smallest. */
struct chart_unit chart_unit_for(const struct chart_unit *units, double value);

/* A series while it is made. */
struct chart_dots {
    double *x, *y;
    const char **tips;
    size_t count;
};

/* Initialises it for so many points at most. Returns whether the arena had room. */
bool chart_dots_init(struct chart_dots *dots, struct arena *arena, size_t most);

/* Adds a point; `tip` (or NULL) is borrowed. */
void chart_dots_add(struct chart_dots *dots, double x, double y, const char *tip);

/* Returns the series of the points, which it borrows; one without a shape shows no tips. */
struct chart_series chart_dots_series(const struct chart_dots *dots, const char *name, enum chart_kind kind,
                                      enum svg_color color, enum svg_shape shape, double radius);

#endif

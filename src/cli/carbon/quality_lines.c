/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/quality_lines.h"

#include <math.h>

#include "base/error.h"

enum { POINTS_OF_PERIOD = 3 };

static const double hour_s = 3600.0;

/* How each quality is drawn, best first; unknown values are not drawn. */
static const struct {
    enum svg_color color;
    enum svg_dash dash;
} looks[GRID_UNKNOWN] = {
    [GRID_MEASURED] = {SVG_BLUE, SVG_SOLID},    [GRID_ESTIMATED] = {SVG_GREEN, SVG_SOLID},
    [GRID_FORECAST] = {SVG_ORANGE, SVG_DASHED}, [GRID_OWN_FORECAST] = {SVG_PURPLE, SVG_DASHED},
    [GRID_FALL_BACK] = {SVG_INK, SVG_DOTTED},
};

/*
 * Takes two points for each period, and one that breaks the line where the next period has
 * another quality.
 */
static size_t take_points(const struct grid_period *periods, size_t period_count, int64_t zero_s,
                          enum grid_quality quality, double *x, double *y)
{
    size_t count = 0;

    for (size_t i = 0; i < period_count; i++) {
        const struct grid_period *period = &periods[i];
        bool goes_on = i + 1 < period_count && periods[i + 1].quality == quality &&
                       periods[i + 1].start_s == period->end_s;

        if (period->quality != quality)
            continue;
        x[count] = (double)(period->start_s - zero_s) / hour_s;
        y[count++] = period->value;
        x[count] = (double)(period->end_s - zero_s) / hour_s;
        y[count++] = period->value;
        if (!goes_on) {
            x[count] = x[count - 1];
            y[count++] = NAN;
        }
    }
    return count;
}

int quality_lines_make(const struct grid_period *periods, size_t count, int64_t zero_s, struct arena *arena,
                       struct quality_lines *out_lines, struct fly_error *out_error)
{
    out_lines->count = 0;
    for (int i = 0; i < GRID_UNKNOWN; i++) {
        struct chart_series *series = &out_lines->series[out_lines->count];
        double *x = arena_alloc(arena, POINTS_OF_PERIOD * count + 1, sizeof *x);
        double *y = arena_alloc(arena, POINTS_OF_PERIOD * count + 1, sizeof *y);

        if (x == NULL || y == NULL)
            return error_no_memory(out_error);
        *series = (struct chart_series){.name = grid_quality_name((enum grid_quality)i),
                                        .kind = CHART_LINE,
                                        .color = looks[i].color,
                                        .dash = looks[i].dash,
                                        .x = x,
                                        .y = y};
        series->count = take_points(periods, count, zero_s, (enum grid_quality)i, x, y);
        if (series->count > 0)
            out_lines->count++;
    }
    return 0;
}

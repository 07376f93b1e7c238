/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a panel. */
#include "cli/kit/chart_plot.h"

static const double line_width = 2.0, usual_radius = 3.5;

bool plot_shows(const struct chart_panel *panel, const struct chart_series *series, size_t i)
{
    return axis_shows(&panel->x, series->x[i]) && axis_shows(&panel->y, series->y[i]) &&
           (series->kind != CHART_BAND || axis_shows(&panel->y, series->y_high[i]));
}

/* Returns the end of the stretch of visible points that begins at `first`. */
static size_t stretch_end(const struct plot *plot, const struct chart_series *series, size_t first)
{
    while (first < series->count && plot_shows(plot->panel, series, first))
        first++;
    return first;
}

static void draw_stretch(const struct plot *plot, const struct chart_series *series, size_t first, size_t end,
                         struct buffer *out)
{
    svg_line_begin(out, series->color, series->dash, line_width);
    for (size_t i = first; i < end; i++) {
        double x = axis_position(&plot->x, series->x[i]);

        if (series->kind == CHART_STEPS && i > first && series->y[i] == series->y[i - 1] && i + 1 < end)
            continue; /* the value does not change */
        if (series->kind == CHART_STEPS && i > first)
            svg_point(out, x, axis_position(&plot->y, series->y[i - 1]));
        svg_point(out, x, axis_position(&plot->y, series->y[i]));
    }
    svg_line_end(out);
}

static void draw_band(const struct plot *plot, const struct chart_series *series, size_t first, size_t end,
                      struct buffer *out)
{
    svg_area_begin(out, series->color);
    for (size_t i = first; i < end; i++)
        svg_point(out, axis_position(&plot->x, series->x[i]), axis_position(&plot->y, series->y[i]));
    for (size_t i = end; i-- > first;)
        svg_point(out, axis_position(&plot->x, series->x[i]), axis_position(&plot->y, series->y_high[i]));
    svg_line_end(out);
}

static void draw_lines(const struct plot *plot, const struct chart_series *series, struct buffer *out)
{
    for (size_t first = 0; first < series->count; first++) {
        size_t end = stretch_end(plot, series, first);

        if (end - first > 1 && series->kind == CHART_BAND)
            draw_band(plot, series, first, end, out);
        else if (end - first > 1)
            draw_stretch(plot, series, first, end, out);
        else if (end - first == 1 && series->shape == SVG_NO_SHAPE && series->kind != CHART_BAND)
            svg_shape(out, SVG_CIRCLE, axis_position(&plot->x, series->x[first]),
                      axis_position(&plot->y, series->y[first]), line_width, series->color, NULL);
        first = end > first ? end - 1 : first;
    }
}

static void draw_shapes(const struct plot *plot, const struct chart_series *series, struct buffer *out)
{
    double radius = series->radius > 0.0 ? series->radius : usual_radius;

    for (size_t i = 0; i < series->count; i++) {
        if (plot_shows(plot->panel, series, i))
            svg_shape(out, series->shape, axis_position(&plot->x, series->x[i]),
                      axis_position(&plot->y, series->y[i]), radius, series->color,
                      series->tips != NULL ? series->tips[i] : NULL);
    }
}

void plot_draw_series(const struct plot *plot, struct buffer *out)
{
    for (size_t s = 0; s < plot->panel->series_count; s++) {
        const struct chart_series *series = &plot->panel->series[s];

        if (series->kind != CHART_POINTS)
            draw_lines(plot, series, out);
        if (series->shape != SVG_NO_SHAPE)
            draw_shapes(plot, series, out);
    }
}

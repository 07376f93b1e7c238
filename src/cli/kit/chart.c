/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out panels and draws what is around a plot: title, legend, axes. */
#include "cli/kit/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/math/portable_math.h"
#include "cli/kit/chart_plot.h"

enum { TITLE_LINE_MAX = 1024, AXIS_TEXT_MAX = 512 };

static const double usual_width = 720.0, edge = 12.0, line_height = 18.0, tick_length = 4.0;
static const double x_ticks_apart = 70.0, y_ticks_apart = 34.0, given_ticks_apart = 14.0;
static const double sample_width = 24.0; /* of a series' sample in the legend */

static const struct svg_font chart_title_font = {SVG_START, SVG_INK, 15, 1};
static const struct svg_font panel_title_font = {SVG_START, SVG_INK, 13, 1};
static const struct svg_font label_font = {SVG_START, SVG_INK, SVG_FONT_SIZE, 0};
static const struct svg_font middle_font = {SVG_MIDDLE, SVG_INK, SVG_FONT_SIZE, 0};
static const struct svg_font end_font = {SVG_END, SVG_INK, SVG_FONT_SIZE, 0};

/* Draws a title on as many lines as it takes, the first with its feet at `y`; without `out` only counts them.
 */
static size_t draw_title(struct buffer *out, double width, double y, const struct svg_font *font,
                         const char *text)
{
    size_t lines = 0;

    for (size_t bytes; *text != '\0'; text += bytes + strspn(text + bytes, " "), lines++) {
        char line[TITLE_LINE_MAX];

        bytes = svg_line_bytes(text, width - 2.0 * edge, font);
        if (out == NULL)
            continue;
        snprintf(line, sizeof line, "%.*s", (int)bytes, text);
        svg_text(out, width, edge, y + (double)lines * line_height, font, line);
    }
    return lines > 0 ? lines : 1;
}

/* The least and the greatest value along one axis; least > greatest means no values. */
struct extent {
    double least, greatest;
};

static void extent_add(struct extent *extent, double value)
{
    extent->least = fmin(extent->least, value);
    extent->greatest = fmax(extent->greatest, value);
}

static void panel_extents(const struct chart_panel *panel, struct extent *x, struct extent *y)
{
    *x = *y = (struct extent){INFINITY, -INFINITY};
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct chart_series *series = &panel->series[s];

        for (size_t i = 0; i < series->count; i++) {
            if (!plot_shows(panel, series, i))
                continue;
            extent_add(x, series->x[i]);
            extent_add(y, series->y[i]);
            if (series->kind == CHART_BAND)
                extent_add(y, series->y_high[i]);
        }
    }
}

static double apart(const struct chart_axis *axis, double usual)
{
    return axis->ticks != NULL ? given_ticks_apart : usual;
}

/* Returns how wide the labels of the y axis are. */
static double y_labels_width(const struct chart_panel *panel)
{
    struct extent x, y;
    struct axis_range range;
    struct axis_ticks ticks;
    double width = 0.0;

    panel_extents(panel, &x, &y);
    range = axis_range_of(&panel->y, y.least, y.greatest, panel->height, 0.0);
    axis_choose_ticks(&panel->y, &range, apart(&panel->y, y_ticks_apart), &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        char text[AXIS_LABEL_MAX];

        axis_label(&ticks, i, text);
        width = fmax(width, svg_text_width(text, SVG_FONT_SIZE));
    }
    return width;
}

/* Returns where the plots begin: at the same place in all panels. */
static double plots_left(const struct chart *chart)
{
    double width = 0.0;

    for (size_t i = 0; i < chart->panel_count; i++)
        width = fmax(width, y_labels_width(&chart->panels[i]));
    return edge + width + 2.0 * tick_length + 4.0;
}

static void draw_sample(struct buffer *out, const struct chart_series *series, double x, double y)
{
    double radius = series->radius > 0.0 ? series->radius : 3.5;

    if (series->kind == CHART_BAND) {
        svg_area_begin(out, series->color);
        svg_point(out, x, y - 5.0);
        svg_point(out, x + sample_width, y - 5.0);
        svg_point(out, x + sample_width, y + 5.0);
        svg_point(out, x, y + 5.0);
        svg_line_end(out);
    } else if (series->kind != CHART_POINTS) {
        svg_line_begin(out, series->color, series->dash, 2.0);
        svg_point(out, x, y);
        svg_point(out, x + sample_width, y);
        svg_line_end(out);
    }
    svg_shape(out, series->shape, x + sample_width / 2.0, y, fmin(radius, 6.0), series->color, NULL);
}

/* Draws the legend in lines of at most the plot's width; returns its height. Draws nothing without `out`. */
static double draw_legend(struct buffer *out, const struct chart_panel *panel, double left, double right,
                          double top)
{
    double x = left, y = top;
    bool any = false;

    for (size_t s = 0; s < panel->series_count; s++) {
        const struct chart_series *series = &panel->series[s];
        double width;

        if (series->name == NULL)
            continue;
        width = sample_width + 6.0 + svg_text_width(series->name, SVG_FONT_SIZE) + 18.0;
        if (x > left && x + width > right) {
            x = left;
            y += line_height;
        }
        if (out != NULL) {
            draw_sample(out, series, x, y + line_height / 2.0);
            svg_text(out, right + 2.0 * edge, x + sample_width + 6.0, y + line_height / 2.0 + 4.0,
                     &label_font, series->name);
        }
        x += width;
        any = true;
    }
    return any ? y + line_height + 4.0 - top : 0.0;
}

/* Returns the height from the panel's top to the top of its plot. */
static double head_height(const struct chart_panel *panel, double right)
{
    double width = right + 2.0 * edge;
    size_t lines = panel->title != NULL ? draw_title(NULL, width, 0, &panel_title_font, panel->title) : 0;

    return (lines > 0 ? (double)lines * line_height + 4.0 : 0.0) +
           draw_legend(NULL, panel, edge, right, 0.0) + line_height + 4.0;
}

static double panel_height(const struct chart_panel *panel, double right)
{
    return head_height(panel, right) + panel->height + 2.0 * line_height + 8.0;
}

/* The label, and where the axis begins if not at 0: a picture of it then shows differences too large. */
static const char *axis_text(const struct chart_axis *axis, const struct axis_range *range,
                             char text[AXIS_TEXT_MAX])
{
    double begin = range->logarithmic ? portable_exp(range->low) : range->low;

    if (axis->ticks != NULL || begin == 0.0)
        return axis->label;
    snprintf(text, AXIS_TEXT_MAX, "%s, %sfrom %.3g", axis->label, range->logarithmic ? "logarithmic " : "",
             begin);
    return text;
}

static void draw_x_axis(struct buffer *out, const struct plot *plot)
{
    const struct chart_axis *axis = &plot->panel->x;
    struct axis_ticks ticks;
    char label[AXIS_TEXT_MAX];

    axis_choose_ticks(axis, &plot->x, apart(axis, x_ticks_apart), &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = axis_position(&plot->x, ticks.values[i]);
        char text[AXIS_LABEL_MAX];

        axis_label(&ticks, i, text);
        svg_segment(out, x, plot->bottom, x, plot->bottom + tick_length, SVG_FAINT, 1.0);
        svg_text(out, plot->width, x, plot->bottom + line_height, &middle_font, text);
    }
    svg_segment(out, plot->left, plot->bottom, plot->right, plot->bottom, SVG_FAINT, 1.0);
    svg_text(out, plot->width, (plot->left + plot->right) / 2.0, plot->bottom + 2.0 * line_height,
             &middle_font, axis_text(axis, &plot->x, label));
}

static void draw_y_axis(struct buffer *out, const struct plot *plot)
{
    const struct chart_axis *axis = &plot->panel->y;
    struct axis_ticks ticks;
    char label[AXIS_TEXT_MAX];

    axis_choose_ticks(axis, &plot->y, apart(axis, y_ticks_apart), &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = axis_position(&plot->y, ticks.values[i]);
        char text[AXIS_LABEL_MAX];

        axis_label(&ticks, i, text);
        svg_segment(out, plot->left - tick_length, y, plot->right, y, SVG_FAINT, 0.3);
        svg_text(out, plot->width, plot->left - 2.0 * tick_length, y + 4.0, &end_font, text);
    }
    svg_text(out, plot->width, edge, plot->top - 8.0, &label_font, axis_text(axis, &plot->y, label));
}

static void draw_panel(struct buffer *out, const struct chart_panel *panel, double left, double right,
                       double top)
{
    double plot_top = top + head_height(panel, right);
    struct plot plot = {panel, left, plot_top, right, plot_top + panel->height, right + 2.0 * edge, {0}, {0}};
    struct extent x, y;

    if (panel->title != NULL) {
        size_t lines = draw_title(out, plot.width, top + 14.0, &panel_title_font, panel->title);

        top += (double)lines * line_height + 4.0;
    }
    draw_legend(out, panel, edge, right, top);
    panel_extents(panel, &x, &y);
    plot.x = axis_range_of(&panel->x, x.least, x.greatest, left, right);
    plot.y = axis_range_of(&panel->y, y.least, y.greatest, plot.bottom, plot.top);
    if (x.least > x.greatest) {
        svg_text(out, plot.width, (left + right) / 2.0, (plot.top + plot.bottom) / 2.0, &middle_font,
                 "nothing to show: no value is known");
        return;
    }
    draw_y_axis(out, &plot);
    draw_x_axis(out, &plot);
    plot_draw_series(&plot, out);
    plot_draw_notes(&plot, out);
}

int chart_draw(const struct chart *chart, struct buffer *out, struct fly_error *out_error)
{
    double width = chart->width > 0.0 ? chart->width : usual_width;
    double left = plots_left(chart), right = width - 2.0 * edge;
    size_t lines = draw_title(NULL, width, 0, &chart_title_font, chart->title);
    double top = edge + 4.0 + (double)lines * line_height, height = top;

    for (size_t i = 0; i < chart->panel_count; i++) {
        if (chart->panels[i].note_count > CHART_NOTES_MAX)
            return error_set(out_error, FLY_ELIMIT, "chart '%.100s': %zu labels; expected at most %d",
                             chart->title, chart->panels[i].note_count, CHART_NOTES_MAX);
        height += panel_height(&chart->panels[i], right) + edge;
    }
    svg_begin(out, width, height, chart->title, chart->description);
    draw_title(out, width, edge + 13.0, &chart_title_font, chart->title);
    for (size_t i = 0; i < chart->panel_count; i++) {
        draw_panel(out, &chart->panels[i], left, right, top);
        top += panel_height(&chart->panels[i], right) + edge;
    }
    svg_end(out);
    if (out->error == FLY_ELIMIT)
        return error_set(out_error, FLY_ELIMIT, "chart '%.100s' is larger than %zu bytes; draw less in it",
                         chart->title, out->maximum);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

int chart_commit(const struct chart *chart, struct atomic_file *file, struct fly_error *out_error)
{
    struct buffer picture;
    int code;

    buffer_init(&picture, CHART_BYTES_MAX);
    code = chart_draw(chart, &picture, out_error);
    if (code < 0)
        atomic_file_discard(file);
    else {
        /* The commit reports a failed write. */
        fwrite(picture.data, 1, picture.length, file->stream);
        code = atomic_file_commit(file, out_error);
    }
    buffer_deinit(&picture);
    return code;
}

int chart_compose_commit(chart_composer *compose, void *context, size_t memory_max, struct atomic_file *file,
                         struct fly_error *out_error)
{
    struct chart chart = {.title = "", .description = ""};
    struct arena arena;
    int code;

    arena_init(&arena, memory_max);
    code = compose(context, &arena, &chart, out_error);
    if (code == 0)
        code = chart_commit(&chart, file, out_error);
    else
        atomic_file_discard(file);
    arena_deinit(&arena);
    return code;
}

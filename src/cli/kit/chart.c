/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out panels, and draws their series and labels, and what is around: title, legend, axes. */
#include "cli/kit/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/math/portable_math.h"

/* Beyond these a difference or a quotient could exceed the range of doubles. */
#define MOST 1e150
#define LEAST 1e-150

static const double margin = 0.05;          /* share of the span, on each side */
static const double distinguishable = 1e-9; /* a relative span below this counts as none */

enum { MANTISSAS = 3, DECIMALS_MAX = 9, SHORTEST = -1 };

static const int mantissas[MANTISSAS] = {1, 2, 5};

bool axis_shows(const struct chart_axis *axis, double value)
{
    if (axis->logarithmic)
        return value >= LEAST && value <= MOST;
    return fabs(value) <= MOST;
}

/* Makes room around a single value. */
static void widen(struct axis_range *range)
{
    double middle = range->low, by = range->logarithmic ? portable_log(2.0) : fabs(middle) / 2.0;

    if (by < LEAST)
        by = 1.0;
    range->low = middle - by;
    range->high = middle + by;
}

static void add_margin(const struct chart_axis *axis, struct axis_range *range)
{
    double by = (range->high - range->low) * margin;
    bool above_zero = !range->logarithmic && range->low >= 0.0;

    if (axis->tight)
        return;
    range->low -= by;
    range->high += by;
    if (above_zero && range->low < 0.0)
        range->low = 0.0;
}

struct axis_range axis_range_of(const struct chart_axis *axis, double least, double greatest, double from_px,
                                double to_px)
{
    struct axis_range range = {axis->logarithmic, least, greatest, from_px, to_px};

    if (least > greatest)
        return (struct axis_range){axis->logarithmic, 0.0, 1.0, from_px, to_px};
    if (axis->logarithmic) {
        range.low = portable_log(least);
        range.high = portable_log(greatest);
    } else if (axis->from_zero) {
        range.low = fmin(least, 0.0);
        range.high = fmax(greatest, 0.0);
    }
    if (range.high - range.low <= fmax(LEAST, distinguishable * fmax(fabs(range.low), fabs(range.high))))
        widen(&range);
    else
        add_margin(axis, &range);
    return range;
}

double axis_position(const struct axis_range *range, double value)
{
    double at = range->logarithmic ? portable_log(value) : value;

    return range->from_px + (at - range->low) / (range->high - range->low) * (range->to_px - range->from_px);
}

static void add_tick(struct axis_ticks *ticks, double value)
{
    if (ticks->count < AXIS_TICKS_MAX)
        ticks->values[ticks->count++] = value;
}

static double power_of_ten(int exponent)
{
    double power = 1.0;

    for (; exponent > 0; exponent--)
        power *= 10.0;
    return power;
}

/* k * mantissa * 10^exponent, the double nearest to that decimal number. */
static double multiple(double k, int mantissa, int exponent)
{
    return exponent < 0 ? k * mantissa / power_of_ten(-exponent) : k * mantissa * power_of_ten(exponent);
}

/* The smallest of 1, 2, 5 times a power of ten that is not below `step`. */
static void nice_step(double step, int *out_mantissa, int *out_exponent)
{
    int exponent = 0, m = 0;

    step *= 1.0 - distinguishable; /* accept a step that differs from a nice one only by rounding */
    while (multiple(1.0, 1, exponent) > step)
        exponent--;
    while (multiple(1.0, 10, exponent) < step)
        exponent++;
    while (m < MANTISSAS && multiple(1.0, mantissas[m], exponent) < step)
        m++;
    *out_mantissa = m < MANTISSAS ? mantissas[m] : 1;
    *out_exponent = m < MANTISSAS ? exponent : exponent + 1;
}

static void linear_ticks(double low, double high, double least_step, struct axis_ticks *ticks)
{
    int mantissa, exponent;
    double step, first;

    nice_step(least_step, &mantissa, &exponent);
    step = multiple(1.0, mantissa, exponent);
    ticks->decimals = exponent < 0 ? -exponent : 0;
    first = ceil(low / step - distinguishable);
    for (int i = 0; i < AXIS_TICKS_MAX && first + i <= high / step + distinguishable; i++)
        add_tick(ticks, multiple(first + i, mantissa, exponent) + 0.0); /* avoids negative zero */
}

/* Ticks at 1, 2, 5 times the powers of ten, or only at the powers, or at every n-th of them. */
static void logarithmic_ticks(const struct axis_range *range, double apart_px, struct axis_ticks *ticks)
{
    double ln10 = portable_log(10.0);
    double per_decade_px = fabs(range->to_px - range->from_px) / ((range->high - range->low) / ln10);
    int first = (int)floor(range->low / ln10 + distinguishable);
    int last = (int)floor(range->high / ln10 + distinguishable);
    int stride = (int)fmax(1.0, ceil(apart_px / per_decade_px));
    int count = per_decade_px >= 3.4 * apart_px ? MANTISSAS : 1; /* from 2 to 1 is the least distance */

    ticks->decimals = SHORTEST;
    for (int decade = first; decade <= last; decade += stride) {
        for (int m = 0; m < count; m++) {
            double value = multiple(1.0, mantissas[m], decade), at = portable_log(value);

            if (at >= range->low - distinguishable && at <= range->high + distinguishable)
                add_tick(ticks, value);
        }
    }
}

/* Uses those of the given values that fit, the least first. */
static void given_ticks(const struct chart_axis *axis, const struct axis_range *range, double apart_px,
                        struct axis_ticks *ticks)
{
    double last_px = 0.0;

    for (size_t i = 0; i < axis->tick_count; i++) {
        double at, px;

        if (!axis_shows(axis, axis->ticks[i]))
            continue;
        at = range->logarithmic ? portable_log(axis->ticks[i]) : axis->ticks[i];
        px = axis_position(range, axis->ticks[i]);
        if (at < range->low || at > range->high || (ticks->count > 0 && fabs(px - last_px) < apart_px))
            continue;
        add_tick(ticks, axis->ticks[i]);
        last_px = px;
    }
    ticks->decimals = SHORTEST;
}

void axis_choose_ticks(const struct chart_axis *axis, const struct axis_range *range, double apart_px,
                       struct axis_ticks *out_ticks)
{
    struct axis_ticks ticks = {0};
    double room = fmax(1.0, fabs(range->to_px - range->from_px) / apart_px);

    if (axis->ticks != NULL)
        given_ticks(axis, range, apart_px, &ticks);
    else if (!range->logarithmic)
        linear_ticks(range->low, range->high, (range->high - range->low) / room, &ticks);
    else
        logarithmic_ticks(range, apart_px, &ticks);
    if (ticks.count < 2 && range->logarithmic && axis->ticks == NULL) {
        double low = portable_exp(range->low), high = portable_exp(range->high);

        ticks = (struct axis_ticks){0}; /* less than a decade: evenly spaced ticks show more */
        linear_ticks(low, high, (high - low) / room, &ticks);
    }
    *out_ticks = ticks;
}

void axis_label(const struct axis_ticks *ticks, size_t index, char *text)
{
    double value = ticks->values[index];

    if (ticks->decimals == SHORTEST || ticks->decimals > DECIMALS_MAX || fabs(value) >= 1e7)
        snprintf(text, AXIS_LABEL_MAX, "%.10g", value);
    else
        snprintf(text, AXIS_LABEL_MAX, "%.*f", ticks->decimals, value);
}

enum { TITLE_LINE_MAX = 1024, AXIS_TEXT_MAX = 512 };

static const double usual_width = 720.0, edge = 12.0, line_height = 18.0, tick_length = 4.0;
static const double x_ticks_apart = 70.0, y_ticks_apart = 34.0, given_ticks_apart = 14.0;
static const double sample_width = 24.0; /* of a series' sample in the legend */

static const struct svg_font chart_title_font = {SVG_START, SVG_INK, 15, 1};
static const struct svg_font panel_title_font = {SVG_START, SVG_INK, 13, 1};
static const struct svg_font label_font = {SVG_START, SVG_INK, SVG_FONT_SIZE, 0};
static const struct svg_font middle_font = {SVG_MIDDLE, SVG_INK, SVG_FONT_SIZE, 0};
static const struct svg_font end_font = {SVG_END, SVG_INK, SVG_FONT_SIZE, 0};

/* The inside of a panel, once its place is known. */
struct plot {
    const struct chart_panel *panel;
    double left, top, right, bottom; /* px */
    double width;                    /* of the picture */
    struct axis_range x, y;
};

/* ---- series ---- */

static const double line_width = 2.0, usual_radius = 3.5;

static bool plot_shows(const struct chart_panel *panel, const struct chart_series *series, size_t i)
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

static void plot_draw_series(const struct plot *plot, struct buffer *out)
{
    for (size_t s = 0; s < plot->panel->series_count; s++) {
        const struct chart_series *series = &plot->panel->series[s];

        if (series->kind != CHART_POINTS)
            draw_lines(plot, series, out);
        if (series->shape != SVG_NO_SHAPE)
            draw_shapes(plot, series, out);
    }
}

/* ---- labels, each where it covers the fewest points and no other label ---- */

struct box {
    double left, top, right, bottom;
};

/* Directions from the point to the nearest corner or edge of the label's box. */
static const struct {
    double x, y;
} directions[] = {{1, -1}, {1, 1}, {-1, -1}, {-1, 1}, {1, 0}, {-1, 0}, {0, -1}, {0, 1}};

enum { DIRECTION_COUNT = sizeof directions / sizeof directions[0] };

static const double distances[] = {12, 22, 36, 54, 76, 102};

enum { DISTANCE_COUNT = sizeof distances / sizeof distances[0] };

static const double point_room = 5.0; /* px around a point that a label keeps free */
static const double cost_of_overlap = 1000.0, cost_of_point = 10.0, cost_of_line = 4.0, cost_of_leading = 3.0;
static const double cost_of_distance = 0.15; /* per px */

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool contains(const struct box *box, double x, double y, double room)
{
    return x > box->left - room && x < box->right + room && y > box->top - room && y < box->bottom + room;
}

static struct box box_at(double x, double y, double width, size_t direction, double distance)
{
    double dx = directions[direction].x, dy = directions[direction].y;
    double near = dx != 0.0 && dy != 0.0 ? distance * 0.7 : distance;
    double left = dx > 0 ? x + near : dx < 0 ? x - near - width : x - width / 2.0;
    double top = dy > 0 ? y + near : dy < 0 ? y - near - SVG_FONT_SIZE : y - SVG_FONT_SIZE / 2.0;

    return (struct box){left, top, left + width, top + SVG_FONT_SIZE};
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* A place to try: the label's box, and the line to it from the point (x, y). */
struct trial {
    struct box box;
    double x, y, to_x, to_y;
};

static struct trial trial_of(double x, double y, const struct box *box)
{
    return (struct trial){*box, x, y, clamp(x, box->left, box->right), clamp(y, box->top, box->bottom)};
}

/* Returns whether the line to the label crosses a place, other than where the line begins. */
static bool leads_over(const struct trial *trial, double x, double y)
{
    double dx = trial->to_x - trial->x, dy = trial->to_y - trial->y, length = sqrt(dx * dx + dy * dy);
    double along = ((x - trial->x) * dx + (y - trial->y) * dy) / length;
    double aside = fabs((x - trial->x) * dy - (y - trial->y) * dx) / length;

    return length > 0.0 && along > 1.0 && along < length && aside < point_room;
}

/* Returns what it costs to cover the points of a series and the middles of its lines. */
static double cost_of_series(const struct plot *plot, const struct chart_series *series,
                             const struct trial *trial)
{
    const struct box *box = &trial->box;
    double cost = 0.0, last_x = 0.0, last_y = 0.0;
    bool joined = false;

    if (series->kind == CHART_BAND)
        return 0.0;
    for (size_t i = 0; i < series->count; i++) {
        double x, y;

        if (!plot_shows(plot->panel, series, i)) {
            joined = false;
            continue;
        }
        x = axis_position(&plot->x, series->x[i]);
        y = axis_position(&plot->y, series->y[i]);
        cost += contains(box, x, y, point_room) ? cost_of_point : 0.0;
        cost += leads_over(trial, x, y) ? cost_of_leading : 0.0;
        for (int part = 1; part < 4 && joined && series->kind != CHART_POINTS; part++)
            cost += contains(box, last_x + (x - last_x) * part / 4.0, last_y + (y - last_y) * part / 4.0, 1.0)
                        ? cost_of_line
                        : 0.0;
        last_x = x;
        last_y = y;
        joined = true;
    }
    return cost;
}

static double cost_of_trial(const struct plot *plot, const struct box *placed, size_t placed_count,
                            const struct trial *trial)
{
    const struct box *box = &trial->box;
    double cost = 0.0;

    if (box->left < plot->left || box->right > plot->right || box->top < plot->top ||
        box->bottom > plot->bottom)
        cost += cost_of_overlap;
    for (size_t i = 0; i < placed_count; i++)
        cost += overlap(&placed[i], box) ? cost_of_overlap : 0.0;
    for (size_t s = 0; s < plot->panel->series_count; s++)
        cost += cost_of_series(plot, &plot->panel->series[s], trial);
    return cost;
}

static struct box place(const struct plot *plot, const struct box *placed, size_t placed_count, double x,
                        double y, double width)
{
    struct box best = {0};
    double least = INFINITY;

    for (size_t distance = 0; distance < DISTANCE_COUNT; distance++) {
        for (size_t direction = 0; direction < DIRECTION_COUNT; direction++) {
            struct box box = box_at(x, y, width, direction, distances[distance]);
            struct trial trial = trial_of(x, y, &box);
            double cost =
                cost_of_trial(plot, placed, placed_count, &trial) + distances[distance] * cost_of_distance;

            if (cost < least) {
                least = cost;
                best = box;
            }
        }
    }
    return best;
}

static void draw_note(struct buffer *out, double width, const struct box *box, double x, double y,
                      const char *text)
{
    static const struct svg_font font = {SVG_START, SVG_INK, SVG_FONT_SIZE, 0};
    struct trial trial = trial_of(x, y, box);
    double dx = trial.to_x - x, dy = trial.to_y - y, length = sqrt(dx * dx + dy * dy);

    if (length > point_room)
        svg_segment(out, x + dx / length * point_room, y + dy / length * point_room, trial.to_x, trial.to_y,
                    SVG_INK, 1.0);
    svg_text(out, width, box->left + 3.0, box->bottom - 2.5, &font, text);
}

static void plot_draw_notes(const struct plot *plot, struct buffer *out)
{
    struct box placed[CHART_NOTES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < plot->panel->note_count; i++) {
        const struct chart_note *note = &plot->panel->notes[i];
        double x, y;

        if (!axis_shows(&plot->panel->x, note->x) || !axis_shows(&plot->panel->y, note->y))
            continue;
        x = axis_position(&plot->x, note->x);
        y = axis_position(&plot->y, note->y);
        placed[count] = place(plot, placed, count, x, y, svg_text_width(note->text, SVG_FONT_SIZE) + 6.0);
        draw_note(out, plot->width, &placed[count], x, y, note->text);
        count++;
    }
}

/* ---- around a plot ---- */

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

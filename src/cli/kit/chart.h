/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_CHART_H
#define FLYBALL_CLI_KIT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "cli/kit/svg.h"

/*
 * One axis of a chart: which values it covers, where they lie in the picture, its ticks. Every
 * number comes from + - * / and portable exp and log, so the bytes are the same everywhere. Pure;
 * thread-safe.
 */
struct chart_axis {
    const char *label;   /* with the unit: "energy (MJ)" */
    bool logarithmic;    /* shows only values above 0 */
    bool from_zero;      /* a linear axis includes 0 */
    bool tight;          /* ends at its least and greatest value, without a margin */
    const double *ticks; /* borrowed: values that get a tick, ascending; NULL: 1, 2, 5 of a power of ten */
    size_t tick_count;
};

/* The values that an axis covers, and where its ends lie in the picture. */
struct axis_range {
    bool logarithmic;
    double low, high;      /* low < high; on a logarithmic axis their logarithms */
    double from_px, to_px; /* where low and high lie */
};

enum { AXIS_TICKS_MAX = 32, AXIS_LABEL_MAX = 32 };

struct axis_ticks {
    size_t count;
    double values[AXIS_TICKS_MAX];
    int decimals; /* of their labels; negative: as many as each label needs */
};

/* Returns whether a value can be shown: finite, not absurdly large, and above 0 if the axis needs that. */
bool axis_shows(const struct chart_axis *axis, double value);

/*
 * Returns the range for values from `least` to `greatest`, both of which the axis must show. A
 * single value gets room on both sides; least > greatest means no values.
 */
struct axis_range axis_range_of(const struct chart_axis *axis, double least, double greatest, double from_px,
                                double to_px);

/* Returns where a value lies in the picture. The axis must show it. */
double axis_position(const struct axis_range *range, double value);

/* Chooses ticks at least `apart_px` from each other, all within the range. */
void axis_choose_ticks(const struct chart_axis *axis, const struct axis_range *range, double apart_px,
                       struct axis_ticks *out_ticks);

/* "0.25", "1500", "2e+12"; `text` holds AXIS_LABEL_MAX bytes. */
void axis_label(const struct axis_ticks *ticks, size_t index, char *text);

/*
 * Charts as SVG pictures (svg.h): panels one below the other, each with two axes, series and
 * labels. All is borrowed for the call.
 *
 *     const double time_h[] = {1.2, 1.5, 2.1}, energy_mj[] = {3.9, 3.1, 2.8};
 *     const struct chart_series series[] = {
 *         {.name = "frontier", .kind = CHART_LINE, .color = SVG_BLUE, .shape = SVG_CIRCLE,
 *          .x = time_h, .y = energy_mj, .count = 3}};
 *     const struct chart_note notes[] = {{1.5, 3.1, "batch 48, 150 W"}};
 *     const struct chart_panel panel = {
 *         .height = 300, .x = {.label = "time (h)"}, .y = {.label = "energy (MJ)"},
 *         .series = series, .series_count = 1, .notes = notes, .note_count = 1};
 *     const struct chart chart = {.title = "librispeech on v100", .description = "...",
 *                                 .panels = &panel, .panel_count = 1};
 *     struct buffer picture;
 *
 *     buffer_init(&picture, CHART_BYTES_MAX);
 *     result = chart_draw(&chart, &picture, out_error);
 *
 * A value that an axis cannot show (NaN, infinite, not above 0 on a logarithmic axis) is left out
 * and breaks its line: unknown values are not drawn. A panel without any value says so. Later
 * series cover earlier ones. The same input gives the same bytes everywhere. Pure; thread-safe.
 */

enum chart_kind {
    CHART_POINTS, /* needs a shape */
    CHART_LINE,
    CHART_STEPS, /* each value holds until the next */
    CHART_BAND,  /* the area between y and y_high */
};

struct chart_series {
    const char *name; /* in the legend of its panel; NULL: not listed */
    enum chart_kind kind;
    enum svg_color color;
    enum svg_shape shape; /* on every point; SVG_NO_SHAPE: none */
    double radius;        /* of the shape in px; 0: 3.5 */
    enum svg_dash dash;   /* of lines */
    const double *x, *y;
    const double *y_high;    /* of CHART_BAND */
    const char *const *tips; /* shown under the pointer, one for each point; or NULL */
    size_t count;
};

/* A text beside a point, with a line to it; placed where it covers the least. */
struct chart_note {
    double x, y;
    const char *text;
};

enum { CHART_NOTES_MAX = 32, CHART_BYTES_MAX = 256 << 20 };

struct chart_panel {
    const char *title; /* or NULL */
    double height;     /* of the plot itself, px */
    struct chart_axis x, y;
    const struct chart_series *series;
    size_t series_count;
    const struct chart_note *notes;
    size_t note_count; /* at most CHART_NOTES_MAX */
};

struct chart {
    const char *title;
    const char *description; /* in words, for people who cannot see the picture */
    double width;            /* px; 0: 720 */
    const struct chart_panel *panels;
    size_t panel_count;
};

/* Appends the picture. FLY_ELIMIT if the buffer's maximum or CHART_NOTES_MAX is exceeded, FLY_ENOMEM. */
int chart_draw(const struct chart *chart, struct buffer *out, struct fly_error *out_error);

#endif

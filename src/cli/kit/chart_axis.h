/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_CHART_AXIS_H
#define FLYBALL_CLI_KIT_CHART_AXIS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * One axis of a chart: which values it spans, where they stand, its ticks.
 * Every number follows from + - * / and portable exp and log: the same bytes
 * everywhere. Pure; thread-safe.
 */
struct chart_axis {
    const char *label;   /* with the unit: "energy (MJ)" */
    bool logarithmic;    /* shows values above 0 alone */
    bool from_zero;      /* a linear axis includes 0 */
    bool tight;          /* ends at its least and greatest value, without a margin */
    const double *ticks; /* borrowed: the values worth a tick, ascending; NULL: 1, 2, 5 of a power of ten */
    size_t tick_count;
};

/* The values an axis spans, and where its ends stand in the picture. */
struct axis_range {
    bool logarithmic;
    double low, high;      /* low < high; their logarithms where logarithmic */
    double from_px, to_px; /* where low and high stand */
};

enum { AXIS_TICKS_MAX = 32, AXIS_LABEL_MAX = 32 };

struct axis_ticks {
    size_t count;
    double values[AXIS_TICKS_MAX];
    int decimals; /* of their labels; negative: as many as each needs */
};

/* Whether a value can be shown: finite, of no absurd size, above 0 where that is needed. */
bool axis_shows(const struct chart_axis *axis, double value);

/*
 * The range over values from `least` to `greatest`, both shown by the axis; a
 * single value gets room on both sides, and least > greatest stands for none.
 */
struct axis_range axis_range_of(const struct chart_axis *axis, double least, double greatest, double from_px,
                                double to_px);

/* Where a value stands; only of values that the axis shows. */
double axis_position(const struct axis_range *range, double value);

/* Ticks at least `apart_px` from each other, all within the range. */
void axis_choose_ticks(const struct chart_axis *axis, const struct axis_range *range, double apart_px,
                       struct axis_ticks *out_ticks);

/* "0.25", "1500", "2e+12"; `text` holds AXIS_LABEL_MAX bytes. */
void axis_label(const struct axis_ticks *ticks, size_t index, char *text);

#endif

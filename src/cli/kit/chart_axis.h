/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_CHART_AXIS_H
#define FLYBALL_CLI_KIT_CHART_AXIS_H

#include <stdbool.h>
#include <stddef.h>

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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/chart_axis.h"

#include <math.h>
#include <stdio.h>

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

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_STATISTICS_H
#define FLYBALL_SIM_STATISTICS_H

#include <stddef.h>

/*
 * A figure over independent runs (seeds).
 *
 * p10 and p90 are quantiles with linear interpolation between order statistics (type 7 of Hyndman
 * and Fan, 1996). An unknown figure is NaN: the mean of no value, the standard error of fewer
 * than two.
 */
struct statistics {
    size_t count;
    double mean;
    double standard_error; /* sample deviation / sqrt(count) */
    double p10;
    double p90;
};

/* Computes them from the finite ones of `count` values. Sorts the values in place, unknown ones last. */
struct statistics statistics_of(double *values, size_t count);

/* Returns the quantile at `fraction`, 0 to 1, of `count` values in ascending order; NaN of none. */
double statistics_quantile(const double *sorted, size_t count, double fraction);

#endif

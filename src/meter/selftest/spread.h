/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SPREAD_H
#define FLYBALL_METER_SELFTEST_SPREAD_H

#include <stddef.h>

/*
 * How values spread, in the unit of the values. The quantile of share q is the smallest value
 * that at least a share q of all values does not exceed. Without values, everything but the count
 * is NAN.
 */
struct spread {
    size_t count;
    double lowest, median, p99, highest;
};

/* Sorts `values`, none of which may be NAN. */
struct spread spread_of(double *values, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_WEIGHTED_ROWS_H
#define FLYBALL_BASE_MATH_WEIGHTED_ROWS_H

#include <stddef.h>

/* Rows of numbers, each with a weight: row i begins at rows[i * stride], its weight is at weights[i * step].
 */
struct weighted_rows {
    const double *rows;
    size_t stride;
    const double *weights;
    size_t step;
    size_t count;
    double sign; /* 1 or -1, of all weights */
};

/*
 * Adds the weighted rows to `sums`, `length` numbers that overlap with none of them: one row after the
 * other, so the bits are those of that order. Pure.
 */
void weighted_rows_add(const struct weighted_rows *of, double *sums, size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_TRIANGLE_H
#define FLYBALL_BASE_MATH_TRIANGLE_H

#include <stddef.h>

/*
 * Symmetric matrices of which only the lower triangle is stored, row after row. Row i begins at
 * triangle_row(i) and has i + 1 numbers.
 */

static inline size_t triangle_row(size_t row)
{
    return row * (row + 1) / 2;
}

/* Returns how many numbers a matrix of so many rows has. */
static inline size_t triangle_size(size_t count)
{
    return triangle_row(count);
}

/* Returns where the element of two indices is, in whatever order they come. */
static inline size_t triangle_at(size_t one, size_t other)
{
    return one > other ? triangle_row(one) + other : triangle_row(other) + one;
}

#endif

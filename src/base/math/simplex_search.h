/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_SIMPLEX_SEARCH_H
#define FLYBALL_BASE_MATH_SIMPLEX_SEARCH_H

#include <stddef.h>

/*
 * Finds a low point of a function of a few numbers, each from 0 to 1, without derivatives.
 *
 *     double at[3] = {0.5, 0.5, 0.5};
 *     double least = simplex_search(&(struct simplex_task){height, &data, 3, 0.2, 500}, at);
 *
 * Nelder and Mead, "A simplex method for function minimization" (1965), with the factors of Gao
 * and Han (2012) that suit more than a few numbers; points outside of 0 .. 1 are moved to the
 * edge. The result depends on where it starts: begin at several places. It is never worse than
 * its start. Deterministic; allocates nothing.
 */
enum { SIMPLEX_SIZE_MAX = 12 };

struct simplex_task {
    double (*height)(const double *at, const void *data); /* never NaN */
    const void *data;
    size_t size;          /* of `at`: 1 .. SIMPLEX_SIZE_MAX */
    double reach;         /* length of the first steps, above 0 */
    unsigned evaluations; /* about how often `height` may be asked */
};

/* Moves `at` to the lowest point that was found; returns its height. */
double simplex_search(const struct simplex_task *task, double *at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_PAIRED_H
#define FLYBALL_DEMO_PAIRED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * How much a figure changed, from pairs of runs that share their luck.
 *
 * The change is that of the sums, R - 1 with R = sum(ours) / sum(theirs). Its 95 % interval is
 * that of a ratio estimator (Cochran, "Sampling Techniques", 3rd ed., 1977, section 6.4):
 *
 *     R - 1 +- t * sd(ours_i - R * theirs_i) / (sqrt(n) * mean(theirs))
 *
 * with t the 97.5 % quantile of Student's distribution with n - 1 degrees of freedom, and sd the
 * sample deviation. Pairing narrows the interval, since luck that both share drops out of the
 * differences.
 */
struct paired {
    size_t count;
    double ours, theirs; /* sums */
    double change;       /* 0.1 for 10 % more */
    double low, high;    /* the interval; NaN for fewer than two pairs */
};

/* Computes it from `count` >= 1 pairs; theirs must be above 0. */
struct paired paired_of(const double *ours, const double *theirs, size_t count);

/*
 * Returns whether ours needed less beyond chance: the interval lies wholly below 0. False if it
 * is unknown.
 */
bool paired_saves(const struct paired *paired);

/* Returns the 97.5 % quantile of Student's distribution, for degrees of freedom from 1; within 1e-5. */
double paired_student(size_t degrees);

#endif

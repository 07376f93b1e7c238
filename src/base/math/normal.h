/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_NORMAL_H
#define FLYBALL_BASE_MATH_NORMAL_H

#include <stddef.h>

/*
 * The standard normal distribution, for decisions: the same bits on every machine, as
 * portable_math.h. Relative error below 1e-12 wherever the result is a normal number. Pure.
 */
double normal_density(double z);

/* Returns the probability of a value below z; Cody, "Rational Chebyshev approximations for the error
 * function" (1969). */
double normal_below(double z);

/* Replaces each number by its normal_below, to the same bits, in less time. */
void normal_below_all(double *numbers, size_t count);

/* Returns normal_density(z) / normal_below(z), also where both are too small to be told from 0. */
double normal_slope(double z);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_PORTABLE_MATH_H
#define FLYBALL_BASE_MATH_PORTABLE_MATH_H

#include <stddef.h>

/*
 * exp and log for decisions: the same bits on every machine.
 *
 * C libraries differ in the last bit of exp and log, and one bit can change the result of a
 * comparison. These functions use only +, -, *, / in a fixed order, which IEEE 754 rounds the
 * same everywhere (with floating-point contraction off). Within 1.5 units in the last place of
 * the exact value. Pure; thread-safe.
 */

/* e^x; 0 below -745.2, infinity above 709.8, NaN for NaN. */
double portable_exp(double x);

/* Replaces each number by its portable_exp, to the same bits, in less than half the time. */
void portable_exp_all(double *numbers, size_t count);

/* Natural logarithm of x; -infinity for 0, NaN for negative x and NaN. */
double portable_log(double x);

#endif

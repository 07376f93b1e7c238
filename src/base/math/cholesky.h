/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_CHOLESKY_H
#define FLYBALL_BASE_MATH_CHOLESKY_H

#include <stddef.h>

/*
 * Small symmetric matrices that are positive definite, stored by rows. Only +, -, *, / and the
 * square root in a fixed order: the same bits on every machine.
 *
 *     cholesky_factor(matrix, n);                    matrix = L L'
 *     cholesky_forward(matrix, n, right, columns);   right = L^-1 right
 */

/*
 * Replaces the lower triangle of the matrix by its Cholesky factor L, and does not touch the rest.
 * A pivot that rounding made too small counts as 1e-14 of its diagonal element. Returns the
 * product of the diagonal elements of L as a sum of logarithms.
 */
double cholesky_factor(double *matrix, size_t count);

/* Replaces `right`, `count` rows of `columns`, by L^-1 right. */
void cholesky_forward(const double *factor, size_t count, double *right, size_t columns);

#endif

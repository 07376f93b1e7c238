/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_STUDENT_H
#define FLYBALL_BASE_MATH_STUDENT_H

/*
 * Return the 95 % and the 97.5 % quantile of Student's distribution; the latter is half the width
 * of a 95 % interval in standard errors. `degrees` of freedom from 1; within 1e-5 for whole numbers,
 * interpolated between them. Pure; thread-safe.
 */
double student_95(double degrees);
double student_975(double degrees);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_UNCERTAINTY_H
#define FLYBALL_METER_UNCERTAINTY_H

/*
 * How far a figure may lie from the truth: half widths of intervals that hold
 * it in 95 of 100 cases. docs/metering.md derives the formulas. Pure.
 */

/*
 * The 95th percentile of |a U - b V| with U and V independent and uniform in
 * 0 .. 1: what two edges of a counter miss whose last updates are of random age.
 * a, b >= 0, the energies that a whole period would hold there.
 */
double uncertainty_edges_j(double a_j, double b_j);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_FIGURE_H
#define FLYBALL_METER_FIGURE_H

#include <stdbool.h>

#include "meter/account.h"

/* An energy of a window, and the half width of the interval that holds the true one in 95 of 100 cases. */
struct figure {
    bool known;
    bool wide; /* the interval may be as wide as the figure, which is the best guess all the same */
    double energy_j, half_j;
};

/* Compute the energy from the counter, and from sampled power. docs/explanation/metering.md derives both.
 * Pure. */
struct figure figure_by_counter(const struct account_window *window, double length_s);
struct figure figure_by_integral(const struct account_window *window, double length_s);

/*
 * Computes the energy from the counter, its updates and the power beside it (meter/fusion.h). If
 * that cannot be, or counter and power disagree, it is unknown, and `out_why` is a clause, or NULL
 * where there is nothing to track.
 */
struct figure figure_by_fusion(const struct account_window *window, double length_s, const char **out_why);

/* Why a window over a counter that is late, see counter_lag.h, cannot be fused: a clause of a note. */
extern const char figure_late_clause[];

/*
 * Returns the seconds at the window's end that no sample covers, where the last one is held; 0
 * for a sampler that goes on.
 */
double figure_tail_s(const struct account_window *window);

/* Returns whether a power reading averages over more than the window, and so says little of it. */
bool figure_is_averaged_away(const struct sensing *sensing, double length_s);

#endif

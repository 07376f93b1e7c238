/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_FUSION_H
#define FLYBALL_METER_FUSION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The energy of a window from a counter whose updates are tracked and from the power beside it.
 *
 * A counter read at t says the energy up to its last update, at u = t - a. What is missing is the
 * energy of the age a. At the window's end it is the expected power P times a:
 *
 *     E(t) = C(u) + P a
 *
 * At its begin later readings have come: the counter at the next known update n, and the mean power
 * after it. So the energy D = C(n) - C(u) of the stretch S = n - u around t is known, and only how
 * it is spread over S is not. If one jump from the power p before u to the power q after n explains
 * D, it was at j with
 *
 *     p j + q (S - j) = D,   so   E(t) = C(u) + p min(a, j) + q max(a - j, 0)
 *
 * otherwise D is spread evenly. Where no update lies between begin and end, the energy is the power
 * times the window's length, and no age matters.
 *
 * The half width of the 95 % interval has four parts, added as the root of the sum of squares: the
 * ages' own uncertainty times the power, at each edge; what the power may be off by (the surprise,
 * or how far the figures for it differ just then, if that is more) for the time that it stands for, a
 * at the end and a (S - a) / S at the begin; and the counter's step. docs/explanation/metering.md derives
 * them. Pure.
 */
struct fusion_edge {
    double at_s; /* all moments count from the same one, as all energies do */
    double total_j;
    double age_low_s, age_high_s;
    double power_w;  /* expected after the last update */
    double change_w; /* by how much the figures for that differ */
};

struct fusion_update {
    double at_s, total_j;
};

struct fusion_window {
    struct fusion_edge begin, end;
    /* The updates that were known next after the begin: none, one or two. */
    int next_count;
    struct fusion_update next[2];
    double surprise_w;    /* see knots_surprise_w */
    double step_j;        /* of the counter's value */
    double summed_half_j; /* half width of what a counter of power readings misses besides; 0: nothing */
};

struct fusion {
    double energy_j, half_j;
};

struct fusion fusion_energy(const struct fusion_window *window);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_KNOTS_H
#define FLYBALL_METER_KNOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * The course of a counter between its updates, as far as they are tracked. A knot is an update: a
 * moment, and the energy up to it. Between two knots lies a mean power. From these and from the
 * power readings follows the power that is to be expected after the last knot, and how far off
 * such expectations were: the surprise, a distribution over the last minute or so. Plain values,
 * no locks.
 */
struct knot {
    bool known;
    struct mono_time at;
    uint64_t total_uj;
};

enum { KNOTS_BINS = 64 };

struct knots {
    struct knot last;
    double mean_w;    /* between the two last knots; NAN: unknown */
    double before_w;  /* between the two before */
    double reading_w; /* the power reading when the last knot was read; NAN: none */
    /* Mean squares of what each of the two was off by, in the time from a knot to the next. */
    double mean_off_w2, reading_off_w2, off_weight;
    double step_uj; /* the largest number of which all differences are multiples */
    /* Both powers, summed over the last half minute: do counter and readings agree in the long run? */
    double counted_ws, sensed_ws, compared_s;
    double bins[KNOTS_BINS], weight_s; /* of the surprise, each a quarter of an octave wide */
};

void knots_init(struct knots *knots);

/*
 * Adds what a reading shows: an update at that moment, the total that it made, and the newest power
 * reading (NAN: none). The same total again changes nothing. `counts` is false where the total
 * does not follow from the last one. Returns true for a new knot.
 */
bool knots_take(struct knots *knots, struct mono_time update, uint64_t total_uj, double reading_w,
                bool counts);

/* Returns the power to be expected after the last knot, given the newest reading; NAN: unknown. */
double knots_power_w(const struct knots *knots, double reading_w);

/*
 * Returns the watts by which the figures for the power just now differ: the reading, and the means
 * of the last two stretches. 0: too few are known.
 */
double knots_change_w(const struct knots *knots, double reading_w);

/* Returns the step in which the counter counts, as far as it shows; 0: it does not. */
double knots_step_j(const struct knots *knots);

/* Returns the watts by which the power is off in at most one of 40 cases. */
double knots_surprise_w(const struct knots *knots);

/* Returns whether counter and readings differ by more than a tenth over a long time. */
bool knots_disagree(const struct knots *knots);

#endif

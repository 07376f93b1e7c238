/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_INTEGRAL_H
#define FLYBALL_METER_INTEGRAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Power readings summed to energy by the trapezoidal rule, as a total since the
 * first reading. Plain values, no locks.
 *
 * A reading speaks of the time before it: on the whole of the moment `lag_s`
 * ago. So the energy up to t is the sum of readings up to t + lag. For a
 * window's begin those come in time and `integral_at` gives the total there; at
 * its end the last reading is held for the lag.
 */
struct integral {
    double lag_s;
    double gap_max_s; /* between readings further apart than this lies a hole, filled with a straight line */
    bool known;
    struct mono_time at; /* of the last reading, */
    double power_w;      /* and what it said */
    double total_j;
    double holes_s, holes_j; /* of that, what was filled */
};

/* The integral at one moment; two of them make a window. */
struct integral_edge {
    bool known;
    double total_j;
    double power_w; /* around then */
    double holes_s, holes_j;
    double held_s; /* for which the last reading was held */
};

/* Takes in a reading; one older than the last changes nothing. */
void integral_take(struct integral *integral, struct mono_time at, double power_w);

/* The sum of readings up to `at`, the last one held; not known before the first and long after the last. */
struct integral_edge integral_edge(const struct integral *integral, struct mono_time at);

/* The sum up to `at`, between the last reading and a further one that is about to be taken. */
struct integral_edge integral_between(const struct integral *integral, struct mono_time at,
                                      struct mono_time next_at, double next_w);

#endif

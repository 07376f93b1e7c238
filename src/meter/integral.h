/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_INTEGRAL_H
#define FLYBALL_METER_INTEGRAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Sums power readings to energy by the trapezoidal rule, as a total since the first reading.
 * Plain values, no locks.
 *
 * A reading describes the time before it, on the whole the moment `lag_s` ago. So the energy up
 * to t is the sum of readings up to t + lag. For a window's begin those readings come in time,
 * and `integral_at` gives the total there. At its end the last reading is held for the lag.
 */
struct integral {
    double lag_s;
    double gap_max_s; /* longer times between readings are a hole, filled with a straight line */
    bool known;
    struct mono_time at; /* time of the last reading */
    double power_w;      /* value of the last reading */
    double total_j;
    double holes_s, holes_j; /* the part of the time and of the total that was filled in */
};

/* The integral at one moment; two such edges make a window. */
struct integral_edge {
    bool known;
    double total_j;
    double power_w; /* at about that moment */
    double holes_s, holes_j;
    double held_s; /* how long the last reading was held */
};

/* Adds a reading; one older than the last changes nothing. */
void integral_take(struct integral *integral, struct mono_time at, double power_w);

/*
 * Returns the sum of readings up to `at`, holding the last one. It is unknown before the first
 * reading and long after the last.
 */
struct integral_edge integral_edge(const struct integral *integral, struct mono_time at);

/* Returns the sum up to `at`, between the last reading and another one that is about to be added. */
struct integral_edge integral_between(const struct integral *integral, struct mono_time at,
                                      struct mono_time next_at, double next_w);

#endif

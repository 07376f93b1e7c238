/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_INTEGRAL_H
#define FLYBALL_METER_INTEGRAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Power readings summed to energy by the trapezoidal rule, as a total since the
 * first reading. Plain values, no locks.
 */
struct integral {
    double gap_max_s; /* readings further apart than this leave a hole */
    bool known;
    struct mono_time at; /* of the last reading, */
    double power_w;      /* and what it said */
    double total_j;
    uint32_t holes;
};

/* The integral at one moment; two of them make a window. */
struct integral_edge {
    bool known;
    double total_j;
    double power_w; /* around then */
    uint32_t holes;
};

/* Takes in a reading; one older than the last changes nothing. */
void integral_take(struct integral *integral, struct mono_time at, double power_w);

/* The integral at `at`, the last reading held; not known before the first and long after the last. */
struct integral_edge integral_edge(const struct integral *integral, struct mono_time at);

#endif

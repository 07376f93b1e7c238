/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_COUNTER_LAG_H
#define FLYBALL_METER_COUNTER_LAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Finds out whether an energy counter sums readings that average over a second, and so is half a second
 * late. With E(t) the integral of power readings that average less, such a counter shows the mean of E over
 * the last second and any other shows E, both but for a constant. For each second, the change of the counter
 * less that of E is compared with 0 and with what the mean of E would have made of it. Squares of both
 * misses fade with a time constant of a minute. A load that does not change tells nothing, and such a
 * counter does no harm to it. Plain values, no locks.
 */
enum { COUNTER_LAG_RING = 32 };

#define COUNTER_LAG_AVERAGE_S 1.0

struct counter_lag_moment {
    struct mono_time at;
    double energy_js; /* the integral of E up to here */
    double apart_j;   /* counter less E */
    bool known;       /* a second before it is known, so that it has */
    double late_j;    /* the mean of E over that second, less E */
};

struct counter_lag {
    uint32_t count;            /* of moments since it began anew; a ring holds the newest */
    double origin_j, energy_j; /* E then, and since then */
    struct counter_lag_moment ring[COUNTER_LAG_RING];
    uint32_t compared;
    double prompt_j2, late_j2; /* misses if the counter is not late, and if it is */
};

/*
 * Adds what counter and integral showed at a moment. `continues` is false if either of them lost energy since
 * the last one.
 */
void counter_lag_take(struct counter_lag *lag, struct mono_time at, double counter_j, double energy_j,
                      bool continues);

/* Returns whether the counter is better explained as one that sums averages. */
bool counter_lag_is_late(const struct counter_lag *lag);

#endif

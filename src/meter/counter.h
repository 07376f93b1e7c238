/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_COUNTER_H
#define FLYBALL_METER_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * An energy counter followed from reading to reading: a total that neither
 * wraps nor is ever reset. Readings come nearly in order of time; one that comes
 * late is placed before the last and changes nothing. Plain values, no locks.
 */
struct counter {
    uint64_t modulus_uj; /* as in struct device_info */
    bool known;          /* a reading was made */
    uint64_t value_uj;   /* the last reading, */
    struct mono_time at;
    struct mono_time same_since; /* the first one in a row with that value, */
    struct mono_time
        other_until; /* and the last one before that row; equal to same_since where there is none */
    double held_s;   /* the longest that a value was seen to stay of late: no period is shorter */
    uint64_t total_uj;
    uint32_t resets; /* met, their gaps filled with `filled_uj` in all */
    uint32_t holes;  /* met, with nothing to fill them */
    uint64_t filled_uj;
};

/* The counter at one moment; two of them make a window. */
struct counter_edge {
    bool known;
    uint64_t total_uj;
    uint32_t resets, holes;
    uint64_t filled_uj;
    double age_low_s,
        age_high_s; /* of the counter's last update, as far as readings tell; high may be INFINITY */
};

/* A power that no device draws: what would need more is no energy but a counter that was reset. */
#define COUNTER_POWER_MAX_W 1e5

/*
 * Takes in a reading. `fill_j` is the energy since the last reading by other
 * means, for a counter found reset, NAN for unknown. Returns the edge there.
 */
struct counter_edge counter_take(struct counter *counter, struct mono_time at, uint64_t value_uj,
                                 double fill_j);

#endif

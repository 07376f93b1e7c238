/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_COUNTER_H
#define FLYBALL_METER_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Follows an energy counter from reading to reading, as a total that neither wraps nor is ever
 * reset. Readings come nearly in order of time; one that comes late is placed before the last and
 * changes nothing. Plain values, no locks.
 */
struct counter {
    uint64_t modulus_uj; /* as in struct device_info */
    bool known;          /* a reading was made */
    uint64_t value_uj;   /* value of the last reading */
    struct mono_time at;
    struct mono_time same_since;  /* the first of the latest readings with that value in a row */
    struct mono_time other_until; /* the last reading before those; equal to same_since if there is none */
    double held_s; /* the longest time that a value recently stayed the same: no period is shorter */
    uint64_t total_uj;
    uint32_t resets; /* resets seen; filled_uj is the sum that fills their gaps */
    uint32_t holes;  /* resets whose gap could not be filled */
    uint64_t filled_uj;
};

/* The counter at one moment; two such edges make a window. */
struct counter_edge {
    bool known;
    uint64_t total_uj;
    uint32_t resets, holes;
    uint64_t filled_uj;
    double age_low_s,
        age_high_s; /* age of the counter's last update, as far as readings tell; high may be INFINITY */
};

/* No device draws this much power: a greater difference means that the counter was reset. */
#define COUNTER_POWER_MAX_W 1e5

/*
 * Adds a reading. `fill_j` is the energy since the last reading from another source, used if the
 * counter was reset; NAN: unknown. Returns the edge there.
 */
struct counter_edge counter_take(struct counter *counter, struct mono_time at, uint64_t value_uj,
                                 double fill_j);

#endif

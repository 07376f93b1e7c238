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
 *
 * A reading that the counter cannot have reached, since it is lower or higher than `power_max_w` allows,
 * breaks the line of its values. The caller's other source fills the gap. If a later reading lies
 * on the line that was left, those in between were wrong: the counter is picked up again from before them,
 * and the total holds what it says. Otherwise it has begun anew, and goes on from there.
 */

/* A point of the counter's line. */
struct counter_point {
    bool known;
    struct mono_time at;
    uint64_t value_uj, total_uj, filled_uj;
    uint32_t holes;
};

struct counter {
    uint64_t modulus_uj; /* as in struct device_info */
    double power_max_w;  /* the most that the device can draw; 0: unknown, COUNTER_POWER_MAX_W */
    bool known;          /* a reading was made */
    uint64_t value_uj;   /* value of the last reading */
    struct mono_time at;
    struct mono_time same_since;  /* the first of the latest readings with that value in a row */
    struct mono_time other_until; /* the last reading before those; equal to same_since if there is none */
    double held_s; /* the longest time that a value recently stayed the same: no period is shorter */
    uint64_t total_uj;
    uint32_t resets; /* breaks of the line, and returns to it; filled_uj is the sum that fills their gaps */
    uint32_t holes;  /* breaks whose gap could not be filled */
    uint64_t filled_uj;
    struct counter_point before; /* the newest reading with another value */
    struct counter_point left;   /* the last reading before the newest break */
    uint64_t fell_uj;            /* by how much the counter fell there; 0: it rose */
};

/* The counter at one moment; two such edges make a window. */
struct counter_edge {
    bool known;
    uint64_t total_uj;
    uint32_t resets, holes;
    uint64_t filled_uj; /* differs between two edges by what may be wrong of a window, either way */
    double age_low_s,
        age_high_s; /* age of the counter's last update, as far as readings tell; high may be INFINITY */
};

/* No device draws this much power. */
#define COUNTER_POWER_MAX_W 3000.0

/* Returns the most that a board can draw whose highest limit is this: twice as much, for a moment. */
double counter_power_max_w(int64_t limit_max_mw);

/*
 * Adds a reading. `fill_j` is the energy since the last reading from another source, used if the
 * counter was reset; NAN: unknown. Returns the edge there.
 */
struct counter_edge counter_take(struct counter *counter, struct mono_time at, uint64_t value_uj,
                                 double fill_j);

#endif

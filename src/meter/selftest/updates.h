/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_UPDATES_H
#define FLYBALL_METER_SELFTEST_UPDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "meter/selftest/spread.h"

/*
 * How often a driver updates a reading, seen from outside: the reading is polled faster than it
 * is updated, and the moments at which it changes are noted.
 *
 * An update that leaves the value as it was cannot be seen. So a value that never changes tells
 * nothing about its period: that is unknown, never 0. Values that seldom change show periods that
 * are too long; their shortest one is then the better guess. A value that changes at nearly every
 * poll is updated at least as often as it was polled: its period is only an upper bound.
 *
 *     updates_init(&watch, periods, COUNT(periods));
 *     while (...)
 *         updates_add(&watch, now, value);
 *     finding = updates_find(&watch);
 */
struct updates {
    double *periods_s; /* borrowed: times between two changes */
    size_t capacity, count;
    size_t polls, changes;
    int64_t value;
    struct mono_time first, last, changed; /* of the first poll, the last poll and the last change */
};

struct update_finding {
    size_t polls, changes;
    double poll_s;          /* between two polls, on average; NAN with fewer than two */
    struct spread period_s; /* between two changes; count 0: unknown */
    bool at_most;           /* the reading may well be updated more often than it was polled */
};

/* Starts without readings; keeps at most the first `capacity` periods. */
void updates_init(struct updates *updates, double *periods_s, size_t capacity);

/* Adds a value read at `when`, which must not go back. */
void updates_add(struct updates *updates, struct mono_time when, int64_t value);

/* Returns what was seen so far. Sorts the periods. */
struct update_finding updates_find(struct updates *updates);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_UPDATES_H
#define FLYBALL_METER_SELFTEST_UPDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "meter/selftest/spread.h"

/*
 * How often a driver updates a reading, from outside: the reading is polled
 * faster than it is updated, and the moments at which it changes are noted.
 *
 * An update that leaves the value as it was cannot be seen, so a value that
 * never changes says nothing of its period: that is unknown, never 0. Values
 * that seldom change show periods that are too long; their shortest one is then
 * the better guess. A value that changes from nearly every poll to the next is
 * updated at least as often as it was polled: its period is only an upper bound.
 *
 *     updates_init(&watch, periods, COUNT(periods));
 *     while (...)
 *         updates_add(&watch, now, value);
 *     finding = updates_find(&watch);
 */
struct updates {
    double *periods_s; /* borrowed: between two changes each */
    size_t capacity, count;
    size_t polls, changes;
    int64_t value;
    struct mono_time first, last, changed; /* polls: first and last; the last change */
};

struct update_finding {
    size_t polls, changes;
    double poll_s;          /* between two polls, on average; NAN with fewer than two */
    struct spread period_s; /* between two changes; count 0: unknown */
    bool at_most;           /* the reading may well be updated more often than it was polled */
};

/* Keeps at most `capacity` periods, the first ones. */
void updates_init(struct updates *updates, double *periods_s, size_t capacity);

/* A value read at `when`, which never goes back. */
void updates_add(struct updates *updates, struct mono_time when, int64_t value);

/* What was seen so far. Sorts the periods. */
struct update_finding updates_find(struct updates *updates);

#endif

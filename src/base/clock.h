/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_CLOCK_H
#define FLYBALL_BASE_CLOCK_H

#include <stdint.h>

/*
 * Monotonic time: for durations, meaningless between machines and boots. It is a type of its own,
 * so that it cannot be mistaken for a date.
 */
struct mono_time {
    int64_t ns;
};

/* A date: nanoseconds since 1970-01-01 00:00 UTC. It may jump; no duration is computed from it. */
struct wall_time {
    int64_t ns;
};

/*
 * A source of time, as a table, so that measuring code and what it measures can both run in
 * virtual time. `state` belongs to the clock.
 *
 *     struct mono_time start = clock->now(clock->state);
 */
struct clock {
    const char *name; /* "real" */
    struct mono_time (*now)(void *state);
    struct wall_time (*date)(void *state);
    /* Returns at `when` or later; a virtual clock jumps there. */
    void (*sleep_until)(void *state, struct mono_time when);
    void *state;
};

/* CLOCK_MONOTONIC and CLOCK_REALTIME. Thread-safe. */
extern const struct clock clock_real;

/* Returns the time of `clock_real`. Thread-safe. */
struct mono_time mono_now(void);

/* Returns the seconds from `start` to `end`. */
double mono_elapsed_s(struct mono_time start, struct mono_time end);

/* Returns the moment halfway between two. */
struct mono_time mono_middle(struct mono_time before, struct mono_time after);

/* Returns the moment `duration_s` seconds after `start`; |duration_s| up to 1e9. */
struct mono_time mono_after_s(struct mono_time start, double duration_s);

#endif

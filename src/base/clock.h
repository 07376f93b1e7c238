/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_CLOCK_H
#define FLYBALL_BASE_CLOCK_H

#include <stdint.h>

/*
 * Monotonic time: for durations, meaningless between machines and boots. A type
 * of its own, so that it cannot be mistaken for a date.
 */
struct mono_time {
    int64_t ns;
};

/* Now, by CLOCK_MONOTONIC. Thread-safe. */
struct mono_time mono_now(void);

/* Seconds from `start` to `end`. */
double mono_elapsed_s(struct mono_time start, struct mono_time end);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_DRIFT_WATCH_H
#define FLYBALL_BASE_MATH_DRIFT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * Tells whether a series of numbers drifts: whether it moves by more than it scatters.
 *
 * Where nothing moves, the variance about the mean and half the mean square of the steps from one number to
 * the next have the same expectation. A series that moves slowly has small steps and a large variance (von
 * Neumann, "Distribution of the Ratio of the Mean Square Successive Difference to the Variance", 1941). The
 * newest 40 numbers count.
 *
 * Plain values: the same numbers give the same answers on every machine.
 */
struct drift_watch {
    uint64_t count; /* numbers so far */
    double newest;
    double mean, squares; /* of those that count: the mean, and the sum of squared distances from it */
    double steps;         /* sum of squared steps */
};

/* Takes in the next number; finite. */
void drift_watch_take(struct drift_watch *watch, double value);

/* Returns whether the series drifts; false for fewer than six numbers. */
bool drift_watch_drifts(const struct drift_watch *watch);

void drift_watch_save(const struct drift_watch *watch, struct buffer *bytes);

/* Returns false for impossible bytes. */
bool drift_watch_load(struct drift_watch *watch, struct bytes_reader *bytes);

#endif

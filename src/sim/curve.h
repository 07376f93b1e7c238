/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CURVE_H
#define FLYBALL_SIM_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "sim/recurring.h"

/*
 * How a run went, at a bounded number of recurrences: what a figure of the run
 * needs, whatever the run's length.
 *
 * Samples are taken after the same recurrences in all runs of a job, so that
 * they can be averaged: after every one where there are few enough, otherwise
 * after each of the first half (where a search explores) and from there in
 * equal ratios to the last, as a logarithmic axis shows them.
 */
enum { CURVE_SAMPLES_MAX = 512 };

/* Positions (recurrences done, from 1) for at most `most` >= 4 samples; returns how many, ascending. */
size_t curve_positions(uint64_t recurrences, size_t most, uint64_t *positions);

/* The samples of one run; all lists are borrowed and have `count` places. */
struct curve {
    const uint64_t *positions;
    size_t count;
    size_t taken;    /* samples so far: fewer than `count` when the run ended early */
    double *regret;  /* so far, as FIGURE_REGRET; NaN without an optimum */
    uint32_t *batch; /* index of the batch size at that recurrence; NULL: not wanted */
    double *limit_w; /* with `batch` */
};

/* Gets a curve its lists from `arena`; false without memory. */
bool curve_init(struct curve *curve, struct arena *arena, const uint64_t *positions, size_t count,
                bool with_knobs);

/* Takes a sample when one is due after `completed` recurrences. */
void curve_take(struct curve *curve, uint64_t completed, double regret, const struct recurrence *recurrence);

#endif

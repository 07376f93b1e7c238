/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CURVE_H
#define FLYBALL_SIM_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "sim/recurring.h"

/*
 * The course of a run at a bounded number of recurrences: what a figure of the run needs, however
 * long it is.
 *
 * All runs of a job have samples after the same recurrences, so that they can be averaged. If
 * there are few recurrences, there is a sample after each one. Otherwise there is one after each
 * in the first half of the samples (where a search explores), and from there on in equal ratios
 * to the last, as a logarithmic axis shows them.
 */
enum { CURVE_SAMPLES_MAX = 512 };

/*
 * Computes the positions (recurrences done, from 1) of at most `most` >= 4 samples, ascending;
 * returns how many.
 */
size_t curve_positions(uint64_t recurrences, size_t most, uint64_t *positions);

/* The samples of one run; all lists are borrowed and have `count` places. */
struct curve {
    const uint64_t *positions;
    size_t count;
    size_t taken;              /* samples so far: fewer than `count` if the run ended early */
    double *regret;            /* so far, as FIGURE_REGRET; NaN without an optimum */
    uint32_t *batch;           /* index of the batch size at that recurrence; NULL: not recorded */
    double *limit_w;           /* with `batch` */
    struct recurrence *totals; /* sums of all recurrences so far; NULL: not recorded */
    uint8_t *dear;             /* with `totals`: the most dear recurrences among any ten in a row so far */
    double *slowness;          /* with `totals`: as in curve_sample */
};

/* A sample: what is known after `completed` recurrences. */
struct curve_sample {
    uint64_t completed;
    double regret;
    const struct recurrence *last, *totals; /* the last recurrence, and the sums of all */
    unsigned dear;                          /* as curve.dear */
    /* Expected time of the newest choices, at most COMPARISON_CHOICES, in the mean, over what the job's bound
     * allows; NaN without a bound. */
    double slowness;
};

/* What a curve records beside the regret. */
enum curve_extent { CURVE_REGRET, CURVE_KNOBS, CURVE_TOTALS };

/* Allocates the curve's lists in `arena`; returns false without memory. */
bool curve_init(struct curve *curve, struct arena *arena, const uint64_t *positions, size_t count,
                enum curve_extent extent);

/* Takes the sample if one is due after so many recurrences. */
void curve_take(struct curve *curve, const struct curve_sample *sample);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ACCOUNT_H
#define FLYBALL_GRID_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "grid/provider.h"
#include "model/energy_slice.h"

/*
 * Grams or money of energy that was used, from what the grid's figures really were.
 *
 *     account_filler_init(&filler, &answer, yearly_mean, out_error);
 *     account_add(&account, &filler, slice.start_s, slice.end_s, slice.gpu_j);      for each slice
 *     ... account.amount, account.energy_j[GRID_MEASURED] / account.all_j ...
 *
 * The energy of a slice is spread evenly over it and goes to the periods it lies in, by time. A
 * period has the first of: an actual value; the published forecast; our own forecast from
 * what had ended before it; the last value, for two hours; the mean of the days before; the configured
 * mean; unknown. Energy whose figure is unknown is counted apart and adds nothing to the
 * amount, so `amount` is of the known part, and says of how much. A revision of a series
 * changes the account when it is computed again; nothing of it is kept.
 *
 * Energy that is not known itself (NAN) adds its time to `unmeasured_s`. Pure but for memory;
 * sums are compensated, right to a relative 1e-12.
 */
struct account {
    double all_j;                         /* that is known, of whatever quality of figure */
    double energy_j[GRID_QUALITY_COUNT];  /* of it, by what its figure is */
    double amount_by[GRID_QUALITY_COUNT]; /* grams or money; of GRID_UNKNOWN 0 */
    double amount;                        /* of all known; NAN where no energy has a figure */
    double time_s, unmeasured_s;
};

/* A sum's parts; ask account_read for the figures. */
struct account_sum {
    double parts[2 * GRID_QUALITY_COUNT][2]; /* compensated */
    double time_s, unmeasured_s;
};

/* A settled series whose gaps between two moments are filled. */
struct account_filler {
    struct grid_series filled; /* owned */
};

/* Fills [from_s, to_s). `answer` NULL: all of it is unknown, or the yearly mean. FLY_ENOMEM, FLY_ELIMIT. */
int account_filler_init(struct account_filler *filler, const struct grid_answer *answer, double yearly_mean,
                        int64_t from_s, int64_t to_s, struct fly_error *out_error);
void account_filler_deinit(struct account_filler *filler);

/* Energy of [start_s, end_s) since 1970; NAN: not known. */
void account_add(struct account_sum *sum, const struct account_filler *filler, double start_s, double end_s,
                 double energy_j);
struct account account_read(const struct account_sum *sum);

#endif

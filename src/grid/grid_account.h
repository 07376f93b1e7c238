/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_ACCOUNT_H
#define FLYBALL_GRID_GRID_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "model/energy_slice.h"
#include "model/grid_series.h"

/*
 * Computes grams or money for energy that was used, from the grid's actual figures.
 *
 *     grid_filler_init(&filler, &answer, NAN, from_s, to_s, out_error);
 *     grid_account_add(&sum, &filler, slice.start_s, slice.end_s, slice.gpu_j);      for each slice
 *     account = grid_account_read(&sum);
 *     ... account.amount, account.energy_j[GRID_MEASURED] / account.all_j ...
 *     grid_filler_deinit(&filler);
 *
 * The energy of a slice is spread evenly over its time and divided among the periods it lies in.
 * Each moment has the first of these that exists: an actual value; the published forecast; our
 * own forecast from what had ended before its period (forecast.h); the last value, for two hours;
 * the mean of the days before; the configured mean; unknown. So a figure does not depend on which
 * stretch of time is asked for. Energy whose figure is unknown is counted apart and adds nothing
 * to the amount: `amount` covers the known part, and the shares say how much that is. Slices may
 * overlap or leave gaps, in any order: the energy of each counts once. If a series is revised,
 * the account changes when it is computed again; no old figure is kept.
 *
 * Energy that is itself unknown (NaN) adds its time to `unmeasured_s` and nothing else. Pure
 * except for memory; sums are compensated, with a relative error of 1e-12. Many threads may read
 * a filler.
 */
struct grid_account {
    double all_j;                         /* all known energy, whatever the quality of its figure */
    double energy_j[GRID_QUALITY_COUNT];  /* the same by the quality of its figure; adds up to all_j */
    double amount_by[GRID_QUALITY_COUNT]; /* grams or money; 0 for GRID_UNKNOWN */
    double amount;                        /* all that is known; NaN if no energy has a figure */
    double time_s;                        /* of all slices */
    double unmeasured_s;                  /* the part of it without known energy */
};

/* A sum, and what rounding took from it. */
struct grid_account_part {
    double sum, lost;
};

/* All zero at first. Never add with fillers of different kinds or currencies to one sum. */
struct grid_account_sum {
    struct grid_account_part energy_j[GRID_QUALITY_COUNT];
    struct grid_account_part amounts[GRID_QUALITY_COUNT];
    struct grid_account_part time_s, unmeasured_s;
    uint64_t known; /* number of pieces with energy and a figure */
};

/* A settled series whose gaps between two moments have been filled. */
struct grid_filler {
    struct grid_series filled; /* owned; without gaps; an unknown value is a period with a NaN */
};

/*
 * Fills [from_s, to_s). `answer` NULL: all of it is unknown, or the yearly mean; NaN: no yearly
 * mean. A missing period takes about 10 us, one of five minutes 45 us. FLY_EUSAGE for an empty
 * stretch, FLY_ENOMEM, FLY_ELIMIT for more than GRID_PERIODS_MAX.
 */
int grid_filler_init(struct grid_filler *filler, const struct grid_answer *answer, double yearly_mean,
                     int64_t from_s, int64_t to_s, struct fly_error *out_error);
void grid_filler_deinit(struct grid_filler *filler);

/*
 * Adds the energy of [start_s, end_s) since 1970; NaN: unknown. Time outside of what was filled
 * is unknown. Known energy without a length of time has the figure of that moment.
 */
void grid_account_add(struct grid_account_sum *sum, const struct grid_filler *filler, double start_s,
                      double end_s, double energy_j);
/*
 * Does the same for each piece of it that lies in one period, in order, for callers that need
 * more than a sum.
 */
typedef void grid_account_piece_fn(void *context, const struct grid_period *period, double start_s,
                                   double end_s, double energy_j);
void grid_account_split(const struct grid_filler *filler, double start_s, double end_s, double energy_j,
                        grid_account_piece_fn *piece, void *context);

struct grid_account grid_account_read(const struct grid_account_sum *sum);

#endif

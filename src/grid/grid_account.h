/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_ACCOUNT_H
#define FLYBALL_GRID_GRID_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "grid/grid_answer.h"
#include "model/energy_slice.h"

/*
 * Grams or money of energy that was used, from what the grid's figures really were.
 *
 *     grid_filler_init(&filler, &answer, NAN, from_s, to_s, out_error);
 *     grid_account_add(&sum, &filler, slice.start_s, slice.end_s, slice.gpu_j);      for each slice
 *     account = grid_account_read(&sum);
 *     ... account.amount, grid_account_share(&account, GRID_MEASURED) ...
 *     grid_filler_deinit(&filler);
 *
 * The energy of a slice is spread evenly over it and goes to the periods it lies in, by time. A
 * moment has the first of: an actual value; the published forecast; our own forecast from
 * what had ended before its period (forecast.h); the last value, for two hours; the mean of the days
 * before; the configured mean; unknown. So a figure does not depend on which stretch of time is
 * asked for. Energy whose figure is unknown is counted apart and adds nothing to the amount, so
 * `amount` is of the known part, and shares say of how much. Slices may overlap or leave gaps, in any
 * order: each one's energy counts once. A revision of a series changes the account when it is
 * computed again; nothing of it is kept.
 *
 * Energy that is not known itself (NaN) adds its time to `unmeasured_s` and nothing else. Pure but for
 * memory; sums are compensated, right to a relative 1e-12. A filler may be read by many threads.
 */
struct grid_account {
    double all_j;                         /* that is known, of whatever quality of figure */
    double energy_j[GRID_QUALITY_COUNT];  /* of it, by what its figure is; adds up to all_j */
    double amount_by[GRID_QUALITY_COUNT]; /* grams or money; of GRID_UNKNOWN 0 */
    double amount;                        /* of all known; NaN where no energy has a figure */
    double time_s;                        /* of all slices */
    double unmeasured_s;                  /* of it, without known energy */
};

/* A sum and what rounding took from it. */
struct grid_account_part {
    double sum, lost;
};

/* All zero at first. Sums of fillers of different kinds, or of currencies, are never one. */
struct grid_account_sum {
    struct grid_account_part energy_j[GRID_QUALITY_COUNT];
    struct grid_account_part amounts[GRID_QUALITY_COUNT];
    struct grid_account_part time_s, unmeasured_s;
    uint64_t known; /* pieces with energy and a figure */
};

/* A settled series whose gaps between two moments are filled. */
struct grid_filler {
    struct grid_series filled; /* owned; without gaps; what is unknown is a period with a NaN */
};

/*
 * Fills [from_s, to_s). `answer` NULL: all of it is unknown, or the yearly mean; NaN: there is none.
 * A missing period costs some 10 us, one of five minutes 45 us. FLY_EUSAGE where nothing lies between,
 * FLY_ENOMEM, FLY_ELIMIT for more than GRID_PERIODS_MAX.
 */
int grid_filler_init(struct grid_filler *filler, const struct grid_answer *answer, double yearly_mean,
                     int64_t from_s, int64_t to_s, struct fly_error *out_error);
void grid_filler_deinit(struct grid_filler *filler);

/*
 * Energy of [start_s, end_s) since 1970; NaN: not known. What lies outside of what was filled is unknown.
 * Known energy in no time has the figure of that moment.
 */
void grid_account_add(struct grid_account_sum *sum, const struct grid_filler *filler, double start_s,
                      double end_s, double energy_j);
/* The same for each piece of it that lies in one period, in order, for who wants more than a sum. */
typedef void grid_account_piece_fn(void *context, const struct grid_period *period, double start_s,
                                   double end_s, double energy_j);
void grid_account_split(const struct grid_filler *filler, double start_s, double end_s, double energy_j,
                        grid_account_piece_fn *piece, void *context);

struct grid_account grid_account_read(const struct grid_account_sum *sum);

/* Which share of the energy has a figure of that quality, 0 .. 1; NaN where no energy is known. */
double grid_account_share(const struct grid_account *account, enum grid_quality quality);

/* The least stretch of whole seconds that holds all slices, to be filled; false where there are none. */
bool grid_account_reach(const struct energy_slice *slices, size_t count, int64_t *out_from_s,
                        int64_t *out_to_s);

#endif

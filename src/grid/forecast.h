/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_FORECAST_H
#define FLYBALL_GRID_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "model/grid_series.h"

/*
 * What the grid's figures will be, for as long as a job may take.
 *
 * For each period the first of these that there is:
 *
 *     1. an actual value          of a period that has ended
 *     2. the published forecast   where it is given and reaches so far
 *     3. our own forecast         what is usual at that time of day, plus the last ended
 *                                 period's difference from what was usual then, which
 *                                 loses 6 % in each hour of lead time
 *     4. the last value           for 2 hours
 *     5. the mean of the past days
 *     6. the configured mean      of the zone, where one is given
 *     7. nothing: unknown
 *
 * and each period of the answer says which (quality). Usual is the mean of the same time of
 * day over the past 14 days, the weight of a day being 0.8 of that of the day after it. Where
 * the days differ from each other by more than the times of day do, that course is chance:
 * it is drawn towards the days' mean by what share of it is (1 - its scatter / its square, as of
 * James and Stein). Repeating yesterday as it was is worse than no forecast in grids with
 * much wind; this one goes back to the mean, in both ways.
 *
 * Only periods that have ended by `now_s` are looked at, so that a simulation cannot
 * peek. Pure; thread-safe.
 */
enum { GRID_FORECAST_DAYS = 14 };

struct grid_forecast_request {
    const struct grid_series *actual;    /* settled */
    const struct grid_series *published; /* settled, or NULL */
    int64_t published_until_s;           /* what of it may be used: periods that start before this */
    int64_t now_s;
    int64_t until_s;
    double yearly_mean; /* of the zone, or NaN */
};

/*
 * Periods from `now_s` to `until_s` without gaps into `out`, the first and the last cut to these. They
 * follow the borders of the actual series, or of the published one where nothing was ever actual. The
 * number of periods that there are, of which at most `capacity` are written; 0 where nothing is
 * known of the length of a period.
 */
size_t grid_forecast(const struct grid_forecast_request *request, struct grid_period *out, size_t capacity);

/* The usual length of those periods; 0: not known. */
int64_t grid_forecast_step(const struct grid_series *actual, const struct grid_series *published);

#endif

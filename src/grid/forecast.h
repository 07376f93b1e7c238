/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_FORECAST_H
#define FLYBALL_GRID_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "model/grid_series.h"

/*
 * Forecasts the grid's figures for as long as a job may take.
 *
 * For each period it takes the first of these that exists:
 *
 *     1. the published forecast   if it is given and reaches so far
 *     2. a value that is known    of a period that has not ended, as in a file of day-ahead prices
 *     3. our own forecast         what is usual at that time of day, plus the last ended
 *                                 period's difference from what was usual then, which
 *                                 loses 6 % in each hour of lead time
 *     4. the last value           for 2 hours
 *     5. the mean of the past days
 *     6. the configured mean      of the zone, if one is given
 *     7. nothing: unknown
 *
 * and each period of the answer says which (quality). Usual is the mean of the same time of day
 * over the past 14 days, where each day weighs 0.8 of the day after it. If the days differ from
 * each other more than the times of day do, the course of the day is chance: then it is drawn
 * towards the days' mean by the share of it that is chance (1 - its scatter / its square, after
 * James and Stein). Repeating yesterday unchanged is worse than no forecast in grids with much
 * wind. In both these ways this forecast returns to the mean.
 *
 * A simulation sets `published_until_s`, and then uses only values of periods that have ended by
 * `now_s`, so that it cannot look into the future. Pure; thread-safe.
 */
enum { GRID_FORECAST_DAYS = 14 };

struct grid_forecast_request {
    const struct grid_series *actual;    /* settled */
    const struct grid_series *published; /* settled, or NULL */
    /*
     * Only published periods that start before this are used, and no value of a period that has not
     * ended; INT64_MAX, used live: all that the series hold.
     */
    int64_t published_until_s;
    int64_t now_s;
    int64_t until_s;
    double yearly_mean; /* of the zone, or NaN */
};

/*
 * Writes periods from `now_s` to `until_s` without gaps into `out`, the first and the last cut to
 * these. They follow the borders of the actual series or, if it never had a value, of the
 * published one. Returns the number of periods, of which at most `capacity` are written; 0 if the
 * length of a period is unknown.
 */
size_t grid_forecast(const struct grid_forecast_request *request, struct grid_period *out, size_t capacity);

/* Returns the usual length of those periods; 0: unknown. */
int64_t grid_forecast_step(const struct grid_series *actual, const struct grid_series *published);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_FORECAST_H
#define FLYBALL_GRID_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "model/grid_series.h"
#include "policy/carbon/carbon_solver.h"

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

/*
 * The outlook in the form that the carbon plan needs (policy/carbon/carbon_plan.h): spans between
 * the borders of all figures that count, each with its weight per kWh.
 *
 *     grid_outlook_init(&outlook, grid_outlook_capacity(&request), out_error);
 *     grid_outlook_foretell(&outlook, &request);
 *     question.outlook = outlook.spans;
 *     question.outlook_count = outlook.count;
 *     question.stale = outlook.stale;
 *     question.scarce = outlook.scarce;
 *     ... outlook.periods[CARBON_INTENSITY][0].value is the figure now, with its quality ...
 *     grid_outlook_deinit(&outlook);
 *
 * Live training, a plan on paper and the simulator use the same code. Pure except for memory; one
 * thread's.
 */

/* What is minimised: a weighted sum of grams, money and energy. */
struct carbon_objective {
    double per_g;     /* weight of a gram */
    double per_money; /* weight of a unit of money */
    double per_kwh;   /* weight of a kWh */
};

struct grid_outlook_request {
    const struct grid_answer *answers[CARBON_SIGNALS]; /* settled; NULL if there is none */
    int64_t published_until_s[CARBON_SIGNALS];         /* see forecast.h; INT64_MAX, used live */
    struct carbon_objective objective;
    double from_s, to_s; /* since 1970 */
};

struct grid_outlook {
    size_t capacity;           /* of each of the following lists */
    struct carbon_span *spans; /* owned; an unknown weight is NaN */
    size_t count;
    struct grid_period *periods[CARBON_SIGNALS]; /* owned: each figure by itself, with its quality */
    size_t period_counts[CARBON_SIGNALS];
    /* Some figure that counts is now known only from a fall-back; a constant is never stale. */
    bool stale;
    bool scarce; /* if so: each such figure has a recent value, but too few before it to forecast more */
};

/* Allocates an outlook. FLY_ENOMEM, FLY_ELIMIT for more than GRID_PERIODS_MAX. */
int grid_outlook_init(struct grid_outlook *outlook, size_t capacity, struct fly_error *out_error);
/* Harmless on a zeroed struct. */
void grid_outlook_deinit(struct grid_outlook *outlook);

/* Makes periods with forecast.h, and spans from them; leaves out what exceeds the capacity. */
void grid_outlook_foretell(struct grid_outlook *outlook, const struct grid_outlook_request *request);

/* Makes only the spans, from periods that the caller has filled in, without gaps from `from_s` on. */
void grid_outlook_merge(struct grid_outlook *outlook, const struct carbon_objective *objective, double from_s,
                        double to_s);

/* Returns the most spans between the two moments: enough for grid_outlook_init. */
size_t grid_outlook_capacity(const struct grid_outlook_request *request);

#endif

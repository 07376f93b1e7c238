/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_OUTLOOK_H
#define FLYBALL_GRID_OUTLOOK_H

#include "grid/forecast.h"
#include "grid/grid_answer.h"
#include "policy/carbon/carbon_solver.h"

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

/* The figures that a kWh may have. */
enum { CARBON_INTENSITY, CARBON_PRICE, CARBON_SIGNALS };

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

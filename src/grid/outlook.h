/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_OUTLOOK_H
#define FLYBALL_GRID_OUTLOOK_H

#include "grid/forecast.h"
#include "grid/grid_answer.h"
#include "policy/carbon/carbon_solver.h"

/*
 * What lies ahead, as the carbon plan takes it (policy/carbon/carbon_plan.h): spans between the
 * borders of all figures that count, each with its weight for a kWh.
 *
 *     grid_outlook_init(&outlook, grid_outlook_capacity(&request), out_error);
 *     grid_outlook_foretell(&outlook, &request);
 *     question.outlook = outlook.spans;
 *     question.outlook_count = outlook.count;
 *     question.stale = outlook.stale;
 *     question.scarce = outlook.scarce;
 *     ... outlook.periods[CARBON_INTENSITY][0].value, with its quality, is what is thought of now ...
 *     grid_outlook_deinit(&outlook);
 *
 * The same for a live training, a plan on paper and the simulator. Pure but for memory; one thread's.
 */

/* The figures that a kWh may have. */
enum { CARBON_INTENSITY, CARBON_PRICE, CARBON_SIGNALS };

/* What is to be small: a sum of these, each with its weight. */
struct carbon_objective {
    double per_g;     /* for each gram */
    double per_money; /* for each unit of money */
    double per_kwh;   /* for each kWh */
};

struct grid_outlook_request {
    const struct grid_answer *answers[CARBON_SIGNALS]; /* settled; NULL where there is none */
    /* Forecasts of periods that start before this count; live all that were published do: INT64_MAX. */
    int64_t published_until_s[CARBON_SIGNALS];
    struct carbon_objective objective;
    double from_s, to_s; /* since 1970; actual values count of periods that end by `from_s` */
};

struct grid_outlook {
    size_t capacity;           /* of each of the following */
    struct carbon_span *spans; /* owned; a weight that is not known is NaN */
    size_t count;
    struct grid_period *periods[CARBON_SIGNALS]; /* owned: each figure by itself, with what it is based on */
    size_t period_counts[CARBON_SIGNALS];
    /* Of a figure that counts nothing better than a fall-back is known now; one constant is never stale. */
    bool stale;
    bool scarce; /* then: each such figure has a value that is new, and too few before it to foretell more */
};

/* FLY_ENOMEM, FLY_ELIMIT for more than GRID_PERIODS_MAX. */
int grid_outlook_init(struct grid_outlook *outlook, size_t capacity, struct fly_error *out_error);
/* Harmless on one that is all zero. */
void grid_outlook_deinit(struct grid_outlook *outlook);

/* Makes periods by forecast.h, and spans of them; what exceeds the capacity is left out. */
void grid_outlook_foretell(struct grid_outlook *outlook, const struct grid_outlook_request *request);

/* Makes the spans alone, of periods that the caller has filled in, without gaps from `from_s` on. */
void grid_outlook_merge(struct grid_outlook *outlook, const struct carbon_objective *objective, double from_s,
                        double to_s);

/* So many spans lie between the two moments at most: enough for grid_outlook_init. */
size_t grid_outlook_capacity(const struct grid_outlook_request *request);

#endif

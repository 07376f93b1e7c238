/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_OUTLOOK_H
#define FLYBALL_GRID_OUTLOOK_H

#include "grid/forecast.h"
#include "grid/provider.h"
#include "policy/carbon_solver.h"

/*
 * What lies ahead, as the carbon plan takes it (policy/carbon_plan.h): spans between the
 * borders of all figures that count, each with its weight for a kWh.
 *
 *     grid_outlook_init(&outlook, capacity, out_error);
 *     grid_outlook_foretell(&outlook, &request);
 *     ... question.outlook = outlook.spans, question.outlook_count = outlook.count, question.stale =
 * outlook.stale grid_outlook_deinit(&outlook);
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
    int64_t published_until_s[CARBON_SIGNALS];         /* forecasts of periods that start before this count */
    struct carbon_objective objective;
    double from_s, to_s; /* since 1970 */
};

struct grid_outlook {
    struct carbon_span *spans; /* owned; a weight that is not known is NAN */
    size_t count, capacity;
    struct grid_period *periods[CARBON_SIGNALS]; /* owned: each figure by itself, with what it is based on */
    size_t period_counts[CARBON_SIGNALS];
    bool stale; /* a figure that counts rests, now, on nothing better than a fall-back */
};

int grid_outlook_init(struct grid_outlook *outlook, size_t capacity, struct fly_error *out_error);
void grid_outlook_deinit(struct grid_outlook *outlook);

void grid_outlook_foretell(struct grid_outlook *outlook, const struct grid_outlook_request *request);

/* So many spans lie between the two moments at most, as far as the series' usual lengths tell. */
size_t grid_outlook_capacity(const struct grid_outlook_request *request);

#endif

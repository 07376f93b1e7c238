/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_SOLVER_H
#define FLYBALL_POLICY_CARBON_CARBON_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/carbon/carbon_hull.h"

/*
 * How fast to run in which span of time, so that work is done at the least weight.
 *
 * Spans follow one another from now on. Each has a weight per kWh of what is drawn in
 * it: grams, money, 1 for energy itself, or a mixture. Running at rate s for d seconds
 * does s * d of work. Sought are the rates that do exactly the work at the least sum of
 * weight * power(rate) * d, where the work may end in any span, and nothing counts from
 * its end on.
 *
 * For a given span of the end the problem is a continuous knapsack: each segment of the
 * hull in each span is an item that gives d * (its rates' difference) of work at a price
 * of weight * slope for each bit of it, which may be negative; taken by ascending price until the work is
 * met, which is exact because prices rise along a hull. In the span of the end the hull starts from nothing
 * at no power, so that the moment of the end is found with the rest. Which span it is has to be tried: all
 * possible ones, or, where spans times ends are more than CARBON_EFFORT_MAX, nine or more evenly spaced ones,
 * among them the first and the last possible.
 *
 * Items are not listed: weights are sorted once, and what is taken at a price follows
 * from sums over the sorted ones. n spans, k segments, e ends: O(n + e * (n + k log n)).
 * Pure; a workspace is one thread's.
 */
enum { CARBON_EFFORT_MAX = 1 << 18, CARBON_ENDS_MIN = 9 };

struct carbon_span {
    double duration_s; /* above 0 */
    double weight;     /* per kWh; finite, may be negative */
};

struct carbon_problem {
    const struct carbon_profile *profile;
    const struct carbon_span *spans;
    size_t span_count;
    const double *fixed; /* what is spent besides where the end is in that span; NULL: nothing */
    size_t ends_most;    /* so many spans are tried for the end; 0: as many as above */
    double work_s;
    double idle_w; /* drawn during a pause, PUE included; NaN: pausing is not allowed */
};

struct carbon_solution {
    double cost;     /* weight of all that is drawn until the end */
    double finish_s; /* from now */
    size_t last;     /* the span of the end */
    double price;    /* weight * W for each second of work, of the last bit that was needed */
    double share;    /* of the items of just this price that are taken */
    struct carbon_hull hulls[3];
};

/* Memory for problems of up to `capacity` spans, kept from one to the next. */
struct carbon_workspace {
    size_t capacity;
    struct carbon_side *sides;  /* owned: sums over sorted spans */
    uint64_t *keys;             /* owned: for sorting */
    uint32_t *by_size;          /* owned: spans by the size of their weights */
    uint32_t *order;            /* owned: the same, with a core first that stands before every end */
    struct carbon_span *sorted; /* owned: in that order */
    size_t core_count;
    bool has_negative;
    void *memory; /* owned: the sides' arrays */
};

int carbon_workspace_init(struct carbon_workspace *workspace, size_t capacity, struct fly_error *out_error);
void carbon_workspace_deinit(struct carbon_workspace *workspace);

/*
 * FLY_EEXHAUSTED when the spans are too short for the work even at the fastest limit,
 * FLY_ELIMIT beyond the workspace's capacity.
 */
int carbon_solve(struct carbon_workspace *workspace, const struct carbon_problem *problem,
                 struct carbon_solution *out_solution, struct fly_error *out_error);

/*
 * How a span is run. In the last one `low` may have the rate 0: the end comes after
 * `high_share` of it. Where pausing is allowed that holds for every span.
 */
struct carbon_mix carbon_solution_mix(const struct carbon_problem *problem,
                                      const struct carbon_solution *solution, size_t span);

#endif

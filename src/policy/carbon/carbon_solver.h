/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_SOLVER_H
#define FLYBALL_POLICY_CARBON_CARBON_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/carbon/carbon_hull.h"

/*
 * Finds how fast to run in which span of time, so that the work is done at the least weight.
 *
 * Spans follow one another from now on. Each has a weight per kWh drawn in it: grams, money, 1
 * for energy itself, or a mixture. Running at rate s for d seconds does s * d of work. The solver
 * looks for the rates that do exactly the work at the least sum of weight * power(rate) * d. The
 * work may end in any span, and nothing counts after its end.
 *
 * For a given span of the end the problem is a continuous knapsack. Each segment of the hull in
 * each span is an item: it gives d * (difference of its rates) of work at a price of weight *
 * slope per unit of work, which may be negative. Items are taken by ascending price until the
 * work is done; this is exact because prices rise along a hull. In the span of the end the hull
 * starts from nothing at no power, so the moment of the end comes out with the rest. The span of
 * the end has to be tried: all possible ones or, if spans times ends are more than
 * CARBON_EFFORT_MAX, nine or more evenly spaced ones, including the first and the last possible.
 *
 * Items are not listed. Weights are sorted once, and sums over the sorted weights tell what is
 * taken at a price. n spans, k segments, e ends: O(n + e * (n + k log n)). Pure; a workspace
 * belongs to one thread.
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
    const double *fixed; /* for each span, a cost that is added if the end is in it; NULL: none */
    size_t ends_most;    /* at most so many spans are tried for the end; 0: as described above */
    double work_s;
    double idle_w; /* drawn during a pause, PUE included; NaN: pausing is not allowed */
};

struct carbon_solution {
    double cost;     /* weight of everything drawn until the end */
    double finish_s; /* from now */
    size_t last;     /* the span of the end */
    double price;    /* weight * W per second of work, of the last unit of work that was needed */
    double share;    /* share that is taken of the items at exactly this price */
    struct carbon_hull hulls[3];
};

/* Memory for problems of up to `capacity` spans, reused from one problem to the next. */
struct carbon_workspace {
    size_t capacity;
    struct carbon_side *sides;  /* owned: sums over sorted spans */
    uint64_t *keys;             /* owned: for sorting */
    uint32_t *by_size;          /* owned: spans sorted by the size of their weights */
    uint32_t *order;            /* owned: the same order, but the core, which lies before every possible
                                 * end, comes first */
    struct carbon_span *sorted; /* owned: in that order */
    size_t core_count;
    bool has_negative;
    void *memory; /* owned: the arrays of the sides */
};

int carbon_workspace_init(struct carbon_workspace *workspace, size_t capacity, struct fly_error *out_error);
void carbon_workspace_deinit(struct carbon_workspace *workspace);

/*
 * Solves a problem. FLY_EEXHAUSTED if the spans are too short for the work even at the fastest
 * limit, FLY_ELIMIT beyond the workspace's capacity.
 */
int carbon_solve(struct carbon_workspace *workspace, const struct carbon_problem *problem,
                 struct carbon_solution *out_solution, struct fly_error *out_error);

/*
 * Returns how a span is run. In the last span `low` may have the rate 0: the end comes after
 * `high_share` of it. Where pausing is allowed that holds for every span.
 */
struct carbon_mix carbon_solution_mix(const struct carbon_problem *problem,
                                      const struct carbon_solution *solution, size_t span);

#endif

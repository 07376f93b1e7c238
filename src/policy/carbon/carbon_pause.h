/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_PAUSE_H
#define FLYBALL_POLICY_CARBON_CARBON_PAUSE_H

#include <stdbool.h>

#include "policy/carbon/carbon_solver.h"

/*
 * Decides when to pause a job. It pauses only if the job's application says that it can, and at
 * what price.
 *
 * A pause costs `checkpoint_s` without work, for saving and restoring together. They are spent at
 * the fastest limit's power when the job goes on. Between two pauses the job runs for at least
 * `least_on_s`; a pause lasts at least `least_off_s`. Pauses begin and end with spans of the
 * outlook.
 *
 * Dynamic programming at a price of work finds the spans in which the job runs, for prices that
 * close in on the work that is needed. For each of those patterns, and for never pausing, the
 * rates are then solved exactly. The best pattern is taken, and patterns near it are tried, so
 * the result is never worse than not pausing. The optimum may be missed. No plan can cost less
 * than `least_cost`, so it bounds by how much. Pure.
 */
struct carbon_pause {
    bool allowed;
    double idle_w;       /* drawn while paused, by GPUs and everything else, without PUE */
    double checkpoint_s; /* from 0 */
    double least_on_s;
    double least_off_s;
};

/*
 * Returns whether pausing costs nothing and has no least times: then a pause is one more point of
 * the hull.
 */
static inline bool carbon_pause_is_free(const struct carbon_pause *pause)
{
    return pause->checkpoint_s <= 0.0 && pause->least_on_s <= 0.0 && pause->least_off_s <= 0.0;
}

/* What the job does now. */
struct carbon_pause_now {
    bool paused;
    double held_s; /* for how long already; INFINITY: for as long as any least time needs */
};

/* One pattern of running and pausing, and the rates in it. */
struct carbon_pattern {
    bool *on;                  /* for each span of the problem, whether the job runs */
    double *lost_s;            /* for each span, the part of it in which the job is restored */
    size_t *place;             /* for each span, its index in `spans` */
    struct carbon_span *spans; /* the spans in which the job runs, without lost parts */
    double *fixed;             /* cost of pauses and restoring before each of `spans` */
    size_t span_count;
    struct carbon_solution solution;
    double cost;
};

struct carbon_pauser {
    struct carbon_pattern best, tried;
    double *sums; /* owned: six arrays for the dynamic programming */
    size_t *next; /* owned: two more arrays for it */
    size_t capacity;
    void *memory; /* owned: the arrays of the patterns */
    double least_cost;
};

int carbon_pauser_init(struct carbon_pauser *pauser, size_t capacity, struct fly_error *out_error);
void carbon_pauser_deinit(struct carbon_pauser *pauser);

/*
 * Finds `pauser->best` for a problem whose idle_w is what a pause draws, PUE included.
 * FLY_EEXHAUSTED if the work cannot be done in time.
 */
int carbon_pause_solve(struct carbon_pauser *pauser, struct carbon_workspace *workspace,
                       const struct carbon_problem *problem, const struct carbon_pause *pause,
                       const struct carbon_pause_now *now, struct fly_error *out_error);

/* Returns how the job runs in one of the spans in which it runs; the pattern must be one of this problem. */
struct carbon_mix carbon_pattern_mix(const struct carbon_problem *problem,
                                     const struct carbon_pattern *pattern, size_t span);

/* Returns whether the job has ended before the span. */
bool carbon_pattern_is_over(const struct carbon_pattern *pattern, size_t span);

#endif

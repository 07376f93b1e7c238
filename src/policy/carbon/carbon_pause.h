/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_PAUSE_H
#define FLYBALL_POLICY_CARBON_CARBON_PAUSE_H

#include <stdbool.h>

#include "policy/carbon/carbon_solver.h"

/*
 * When to pause a job: only where its application says that it can, and at what price.
 *
 * A pause costs `checkpoint_s` without work, for saving and restoring together, which are
 * spent at the fastest limit's power when the job goes on. Between two pauses it runs for
 * at least `least_on_s`, and a pause lasts at least `least_off_s`; pauses begin and end
 * with spans of the outlook.
 *
 * In which spans it runs is found by dynamic programming at a price of work, for prices that
 * close in on the work that is needed. For each of those patterns, and for never pausing,
 * the rates are then solved exactly, the best is taken, and patterns near it are tried:
 * never worse than not pausing. The optimum may be missed; `least_cost` says what no
 * plan can be below, so by how much at most. Pure.
 */
struct carbon_pause {
    bool allowed;
    double idle_w;       /* drawn while paused: GPUs and what else goes on, without PUE */
    double checkpoint_s; /* from 0 */
    double least_on_s;
    double least_off_s;
};

/* Whether neither cost nor least times stand against it: then it is one more point of the hull. */
static inline bool carbon_pause_is_free(const struct carbon_pause *pause)
{
    return pause->checkpoint_s <= 0.0 && pause->least_on_s <= 0.0 && pause->least_off_s <= 0.0;
}

/* What the job does now. */
struct carbon_pause_now {
    bool paused;
    double held_s; /* for how long; INFINITY for as long as is needed */
};

/* One pattern of running and pausing, and the rates in it. */
struct carbon_pattern {
    bool *on;                  /* of each span of the problem */
    double *lost_s;            /* its part in which the job is restored */
    size_t *place;             /* where the span stands among those below */
    struct carbon_span *spans; /* those in which it runs, without what is lost */
    double *fixed;             /* cost of pauses and restoring before each of these */
    size_t span_count;
    struct carbon_solution solution;
    double cost;
};

struct carbon_pauser {
    struct carbon_pattern best, tried;
    double *sums; /* owned: six arrays for the dynamic programming */
    size_t *next; /* owned: two more */
    size_t capacity;
    void *memory; /* owned: the patterns' arrays */
    double least_cost;
};

int carbon_pauser_init(struct carbon_pauser *pauser, size_t capacity, struct fly_error *out_error);
void carbon_pauser_deinit(struct carbon_pauser *pauser);

/*
 * Finds `pauser->best` for a problem whose idle_w is what a pause draws, PUE included.
 * FLY_EEXHAUSTED when the work cannot be done in time.
 */
int carbon_pause_solve(struct carbon_pauser *pauser, struct carbon_workspace *workspace,
                       const struct carbon_problem *problem, const struct carbon_pause *pause,
                       const struct carbon_pause_now *now, struct fly_error *out_error);

/* How a span in which the job runs is run; the pattern is one of this problem's. */
struct carbon_mix carbon_pattern_mix(const struct carbon_problem *problem,
                                     const struct carbon_pattern *pattern, size_t span);

/* Whether the job is over before the span. */
bool carbon_pattern_is_over(const struct carbon_pattern *pattern, size_t span);

#endif

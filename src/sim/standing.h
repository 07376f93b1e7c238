/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_STANDING_H
#define FLYBALL_SIM_STANDING_H

#include <stddef.h>

#include "sim/campaign.h"

/*
 * How a policy stands against another, its rival, over a set of jobs: figures of a campaign with
 * `horizons`, at one of them.
 *
 * Seeds are paired: the same seed, recurrence, try and batch size meet the same recorded run under
 * every policy. A run that ended before the horizon is counted in `ended`; it enters the figures
 * with the default's costs from there on if the plan has rest_at_default, and else no figure. Means
 * over jobs give every job the same weight. NaN: unknown.
 */
struct standing_question {
    size_t first, count;            /* workloads of the plan: the set */
    size_t policy, rival, standard; /* indices; `standard` is the default, which changes are against */
    size_t horizon;                 /* index */
};

enum { STANDING_REPLICATES = 1000, STANDING_DEAR = 3 };

struct standing {
    size_t runs;  /* jobs times seeds */
    size_t ended; /* of these, before the horizon */

    /* Regret in optimal runs: the mean over jobs of their means, and quantiles over all runs. */
    double regret, regret_p90, regret_p99, regret_worst;

    /*
     * The mean regret as a share of the rival's, and the 95 % interval of that share by the bootstrap over
     * workloads (Efron, 1979): STANDING_REPLICATES draws of as many workloads, with replacement, where a
     * workload is all jobs of one name, on whatever GPU. It says how the share depends on which workloads
     * there are. Unknown with fewer than two of them. All three are unknown if the rival has no regret.
     */
    double ratio, ratio_low, ratio_high;

    size_t jobs_won;         /* with less mean regret than the rival */
    double runs_won;         /* share of paired runs with less regret than the rival; equal ones count half */
    double worst_excess;     /* most that a job's mean regret exceeds the rival's, less two standard errors of
                                the paired difference; may be negative */
    size_t worst_excess_job; /* index among the plan's workloads */

    /* Total over all recurrences up to the horizon, relative to the default's: geometric means over jobs. */
    double energy, time, cost;
    double worst_cost; /* the dearest job's */
    size_t worst_cost_job;
    double near_default; /* share of jobs whose cost is at most STANDING_NEAR of the default's */

    /*
     * Share of runs in which some ten recurrences in a row had more than STANDING_DEAR that cost over 1.2
     * times what the default costs in the same recurrence with the same luck.
     */
    double runs_dear;

    /*
     * Share of runs whose last choices, at most COMPARISON_CHOICES, take in the mean over STANDING_BEYOND of
     * what the job's bound allows, in expectation of the trace. Unknown for jobs without a bound.
     */
    double runs_beyond;
};

#define STANDING_BEYOND 1.02

#define STANDING_NEAR 1.05

/* Computes it. FLY_ENOMEM. */
int standing_find(const struct campaign_plan *plan, const struct campaign *campaign,
                  const struct standing_question *question, struct standing *out_standing,
                  struct fly_error *out_error);

/* The mean regret of one job as a share of the rival's, with its 95 % interval over paired seeds. */
struct standing_ratio {
    double ratio, low, high; /* NaN: unknown, or with one seed */
};

/*
 * Computes it for the question's first job. With x - ratio * y for the regrets x and y of each seed, the
 * standard error is that of their mean over the rival's (Cochran, "Sampling Techniques", 1977, section
 * 6.4). FLY_ENOMEM.
 */
int standing_ratio_of_job(const struct campaign_plan *plan, const struct campaign *campaign,
                          const struct standing_question *question, struct standing_ratio *out_ratio,
                          struct fly_error *out_error);

/* Gives the worst regrets of all runs, descending, at most `most`; returns how many. FLY_ENOMEM. */
int standing_worst_runs(const struct campaign_plan *plan, const struct campaign *campaign,
                        const struct standing_question *question, size_t most, double *out_regrets,
                        size_t *out_count, struct fly_error *out_error);

#endif

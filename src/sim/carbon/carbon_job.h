/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_CARBON_JOB_H
#define FLYBALL_SIM_CARBON_CARBON_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid/forecast.h"
#include "model/grid_series.h"
#include "policy/carbon/carbon_plan.h"
#include "policy/carbon/carbon_rule.h"
#include "sim/crew.h"

/*
 * The grid's actual figures without gaps, which a simulation accounts with. Where the record
 * has no value, it takes the published forecast of that period, else the line between the
 * neighbours; after the record's end, the value a day before. The quality GRID_UNKNOWN says that a
 * value is one of these. Only the decisions of `foresight` use it.
 */
struct grid_truth {
    struct grid_series series; /* owned */
};

/*
 * Covers the first actual period up to `beyond_s` after the last; of an answer without actual values the
 * published ones. FLY_EDATA without any value, FLY_ELIMIT, FLY_ENOMEM.
 */
int grid_truth_init(struct grid_truth *truth, const struct grid_answer *answer, int64_t beyond_s,
                    const char *name, struct fly_error *out_error);
void grid_truth_deinit(struct grid_truth *truth);

/*
 * One job in virtual time under a policy that follows the grid. It starts at a moment of a
 * recorded series, runs as its profile says, and the policy is asked again at every border of a
 * period, as in a live run.
 *
 *     max         the fastest limit
 *     static      the best single limit within the bound, by the power it draws
 *     mix         the best constant speed within the bound, from two limits that alternate all the time
 *     published   the published rule, which knows no bound
 *     plan        the carbon plan with actual values of periods that have ended, the forecast
 *                 made from them, and the published forecasts that are known by then
 *     foresight   the exact solution with all actual values known: no policy does better
 */
enum carbon_policy {
    CARBON_POLICY_MAX,
    CARBON_POLICY_STATIC,
    CARBON_POLICY_MIX,
    CARBON_POLICY_PUBLISHED,
    CARBON_POLICY_PLAN,
    CARBON_POLICY_FORESIGHT,
    CARBON_POLICY_COUNT
};

extern const char *const carbon_policy_names[CARBON_POLICY_COUNT + 1];

struct carbon_world {
    const struct carbon_profile *profile;              /* with host and PUE */
    const struct carbon_profile *bare;                 /* the GPUs alone, which the published rule uses */
    const struct grid_answer *answers[CARBON_SIGNALS]; /* NULL if there is none */
    const struct grid_truth *truths[CARBON_SIGNALS];   /* likewise */
    struct carbon_objective objective;
    struct carbon_rule rule;
    bool rule_is_scaled; /* uses the maximum of the past eight days as max_carbon */
    double work_s;       /* at the fastest limit */
    double bound_s;      /* the time that the job may take */
    struct carbon_plan_settings plan;
    double known_ahead_s; /* published forecasts are known so far ahead, and that of the current period */
    double host_w, pue;
};

struct carbon_outcome {
    double time_s;
    double energy_j; /* all that is counted: (GPUs + host) * PUE */
    double gpu_energy_j;
    double grams;       /* NaN without intensities */
    double money;       /* NaN without prices */
    double known_share; /* share of the energy whose intensity is an actual value */
    double paused_s;
    uint32_t changes; /* of the limit */
    uint32_t pauses;
    uint32_t decisions;
    bool late;
};

/* A worker's memory. */
struct carbon_worker {
    const struct carbon_world *world;
    struct carbon_plan plan;
    struct grid_outlook outlook;
};

int carbon_worker_init(struct carbon_worker *worker, const struct carbon_world *world,
                       struct fly_error *out_error);
void carbon_worker_deinit(struct carbon_worker *worker);

int carbon_job_run(struct carbon_worker *worker, enum carbon_policy policy, int64_t start_s,
                   struct carbon_outcome *out_outcome, struct fly_error *out_error);

/*
 * The same job at many starts under several policies. Starts are spaced evenly over the record:
 * from eight days after its beginning (a forecast looks back that far) to the last one whose
 * bound still ends within it. With a seed they are drawn from that time instead.
 */
enum { CARBON_STARTS_MAX = 100000, CARBON_SKIP_S = 8 * 86400 };

struct carbon_campaign {
    const struct carbon_world *world;
    const enum carbon_policy *policies;
    size_t policy_count;
    size_t starts;
    uint32_t seed; /* 0: evenly spaced */
    unsigned threads;
    void (*thread_begun)(void);
    crew_progress *progress; /* as in crew.h */
    void *progress_context;
};

/* Returns the moment of a start. FLY_EDATA if the record is too short for the job. */
int carbon_campaign_start(const struct carbon_campaign *campaign, size_t start, int64_t *out_start_s,
                          struct fly_error *out_error);

/* Runs the campaign. Outcomes are by policy, then by start; the same for any number of threads. */
int carbon_campaign_run(const struct carbon_campaign *campaign, struct carbon_outcome *outcomes,
                        struct fly_error *out_error);

#endif

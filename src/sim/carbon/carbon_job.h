/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_CARBON_JOB_H
#define FLYBALL_SIM_CARBON_CARBON_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid/outlook.h"
#include "policy/carbon/carbon_plan.h"
#include "policy/carbon/carbon_rule.h"
#include "sim/carbon/grid_truth.h"

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

#endif

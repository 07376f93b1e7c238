/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_JOB_SPEC_H
#define FLYBALL_MODEL_JOB_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/objective.h>

/*
 * Describes a recurring job as far as decisions need it. It is registered once and never changed:
 * plain data, owned by whoever made it.
 */
struct batch_choice {
    uint32_t size;          /* global batch size, > 0 */
    const double *limits_w; /* power limits that can be set, ascending */
    size_t limit_count;     /* >= 1 */
};

struct job_spec {
    const char *name;                      /* also seeds the job's random numbers */
    const struct batch_choice *batches;    /* the batch sizes to choose from, ascending */
    size_t batch_count;                    /* 1 .. JOB_BATCHES_MAX */
    size_t default_batch;                  /* index into batches */
    uint32_t max_epochs;                   /* a try that has not reached its target by then has failed */
    double max_power_w;                    /* as in flyball/cost.h */
    double eta;                            /* 0 .. 1; with an objective: objective_eta */
    const struct fly_objective *objective; /* chooses power limits; NULL: the cost with eta does */
    uint32_t gpu_count;                    /* GPUs that share a limit; 0: 1 */
};

enum { JOB_BATCHES_MAX = 1024, JOB_LIMITS_MAX = 1024 };

/* Returns the highest power limit of a batch size. */
static inline double batch_highest_limit_w(const struct batch_choice *batch)
{
    return batch->limits_w[batch->limit_count - 1];
}

/* Returns the eta with which a cost means the same as an objective. */
static inline double objective_eta(const struct fly_objective *objective)
{
    switch (objective->kind) {
    case FLY_OBJECTIVE_COST:
        return objective->eta;
    case FLY_OBJECTIVE_TIME:
        return 0.0;
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_LOWEST_LIMIT:
    case FLY_OBJECTIVE_CARBON:
    case FLY_OBJECTIVE_MONEY:
        break;
    }
    return 1.0;
}

/* Returns whether an objective is measured in what a kWh of some grid costs: carbon or money. */
static inline bool objective_of_grid(const struct fly_objective *objective)
{
    return objective->kind == FLY_OBJECTIVE_CARBON || objective->kind == FLY_OBJECTIVE_MONEY;
}

#endif

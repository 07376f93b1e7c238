/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_RECURRING_H
#define FLYBALL_SIM_RECURRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/decider.h"
#include "sim/world/environment.h"
#include "sim/world/workload.h"

/*
 * One recurring job in the simulated world: the decision core decides, the trace answers, and
 * what happened goes back to the core as events.
 *
 *     struct recurring job;
 *
 *     recurring_init(&job, &workload, policy, &parameters, out_error);
 *     while (...)
 *         recurring_run(&job, &recurrence, out_error);
 *     recurring_deinit(&job);
 *
 * A recurrence is over when a try reaches its target. The job ends after RECURRING_TRIES_MAX
 * tries that did not, or when the policy has no choice left, as in the published code.
 */
enum { RECURRING_TRIES_MAX = 20 };

/* One training, as it goes into the tries file. */
struct try_record {
    uint64_t recurrence; /* from 0 */
    uint64_t number;     /* counts the tries of the whole job, from 0 */
    uint32_t batch_size;
    double power_limit_w;
    uint32_t path; /* index among the batch size's recorded runs */
    bool reached;
    double energy_j;
    double time_s;
    double cost_j;
    size_t batch; /* index */
    enum trial_outcome outcome;
    double epochs; /* trained; 0: only its power profile was measured */
};

/* Called for every try that ran, if only to measure a power profile. */
typedef void recurring_observer(void *context, const struct try_record *record);

/* Sums over all tries of one recurrence. */
struct recurrence {
    double energy_j;
    double time_s;
    double cost_j;
    size_t batch; /* of the last try */
    double power_limit_w;
};

/* Adds the energy, time and cost of `more` to `sums`. */
static inline void recurrence_add(struct recurrence *sums, const struct recurrence *more)
{
    sums->energy_j += more->energy_j;
    sums->time_s += more->time_s;
    sums->cost_j += more->cost_j;
}

struct recurring {
    const struct workload *workload; /* borrowed */
    struct arena arena;              /* the decider's */
    struct decider decider;
    struct environment environment;
    uint64_t recurrences;         /* completed ones and one that has begun */
    uint64_t tries;               /* that ran */
    uint64_t refused;             /* tries that did not run */
    recurring_observer *observer; /* NULL: none */
    void *observer_context;
};

/* Borrows `workload`. Errors as the policy's create. Call recurring_deinit only after success. */
int recurring_init(struct recurring *job, const struct workload *workload, const struct batch_policy *policy,
                   const struct policy_parameters *parameters, struct fly_error *out_error);

void recurring_deinit(struct recurring *job);

/*
 * Takes the recorded runs in the file's order instead of drawing them. Call it before the first
 * recurrence. FLY_ENOMEM.
 */
int recurring_in_order(struct recurring *job, struct fly_error *out_error);

/*
 * Runs one recurrence. FLY_EEXHAUSTED if the job ends before the target was reached. That is a
 * result, not a fault: its tries were observed, and the sums are filled in.
 */
int recurring_run(struct recurring *job, struct recurrence *out_recurrence, struct fly_error *out_error);

#endif

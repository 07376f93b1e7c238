/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_SCENARIO_H
#define FLYBALL_SIM_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/campaign.h"
#include "sim/world/workload.h"

/*
 * What happens to jobs over their recurrences: courses on which policies are compared, as rows of
 * one table.
 *
 *     steady           nothing but the recurrences themselves
 *     shift .. up-down the drifts of sim/world/drift.h
 *     burst-2, -4, -8  so many recurrences start together (burst.h)
 *     memory           larger batch sizes do not fit (sim/world/altered.h)
 *     crashes          one trial in ten crashes (environment.h)
 *     learning-rate    more epochs away from the default (sim/world/altered.h)
 *     other-gpu, -2    policies that heed it bring 30 recurrences of the job on the next GPU of the
 *                      plan, or on the one after that (transfer.h); nothing if there is none
 *     other-eta        they bring those of the job under eta 1, or under 0 if its own is above 0.5
 *     wrong-job        they bring those of another job on the same GPU, as if it were like this one
 *     wrong-up, -down  they bring those of the job itself with batch sizes 8 times as large, or small
 *     bound-3, -10     least energy, at most 3 or 10 % slower than the default
 */
enum scenario_kind {
    SCENARIO_STEADY,
    SCENARIO_SHIFT,
    SCENARIO_JUMP,
    SCENARIO_SINE,
    SCENARIO_LEVEL,
    SCENARIO_TRIPLE,
    SCENARIO_GROWTH,
    SCENARIO_UP_DOWN,
    SCENARIO_BURST_2,
    SCENARIO_BURST_4,
    SCENARIO_BURST_8,
    SCENARIO_MEMORY,
    SCENARIO_CRASHES,
    SCENARIO_LEARNING_RATE,
    SCENARIO_BOUND_3,
    SCENARIO_BOUND_10,
    SCENARIO_OTHER_GPU,
    SCENARIO_OTHER_GPU_2,
    SCENARIO_OTHER_ETA,
    SCENARIO_WRONG_JOB,
    SCENARIO_WRONG_UP,
    SCENARIO_WRONG_DOWN,
    SCENARIO_COUNT
};

extern const char *const scenario_names[]; /* by kind, then "all", ended by NULL */

/* A scenario's jobs: shallow copies of others, which must outlive it. */
struct scenario {
    struct arena arena;
    struct workload *workloads;
    struct workload *elsewhere; /* the same under another eta */
    struct transfer *transfers; /* what they bring, or NULL */
};

/*
 * Sets up a plan that has its workloads and recurrences for the scenario: its workloads are replaced
 * by the scenario's. FLY_ENOMEM. Call scenario_end only after success.
 */
int scenario_begin(struct scenario *scenario, enum scenario_kind kind, struct campaign_plan *plan,
                   struct fly_error *out_error);
void scenario_end(struct scenario *scenario);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_PARETO_H
#define FLYBALL_CLI_JOB_JOB_PARETO_H

#include "job/past/job_frontier.h"
#include "sim/open/pareto_result.h"
#include "sim/world/workload.h"

/*
 * A live job's frontier in the form in which the views show a recorded job's. Only what they need is filled
 * in. Memory is the arena's; the history and the frontier must outlive it. FLY_ENOMEM.
 */
struct job_pareto {
    struct workload workload;
    struct pareto_spread *spreads; /* in the order of workload.spec.batches */
};

int job_pareto_of(const struct job_history *history, size_t machine, const struct job_frontier *frontier,
                  struct arena *arena, struct job_pareto *out_pareto, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_PARETO_H
#define FLYBALL_CLI_JOB_JOB_PARETO_H

#include "cli/views/pareto_result.h"
#include "job/past/profiles.h"
#include "sim/world/workload.h"

/*
 * A live job on one kind of hardware as the simulator sees a recorded one: for each
 * batch size the epochs that its trials took for each that reached the target, failed
 * ones included, and what an epoch takes under each power limit (job/past/epoch_points.h).
 * Only what a frontier needs is filled in. A batch size that reached its target, and of
 * which no limit's epoch is known, is left out of it. Memory is the arena's. FLY_ENOMEM.
 */
struct job_pareto {
    struct workload workload;
    struct pareto_spread *spreads; /* as workload.spec.batches */
};

int job_pareto_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                  struct arena *arena, struct job_pareto *out_pareto, struct fly_error *out_error);

#endif

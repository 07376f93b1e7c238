/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_PARETO_H
#define FLYBALL_CLI_JOB_JOB_PARETO_H

#include "cli/views/pareto_result.h"
#include "job/past/profiles.h"
#include "sim/world/workload.h"

/*
 * A live job on one kind of hardware in the form in which the simulator has a recorded one. For
 * each batch size it has the epochs that its trials took per trial that reached the target,
 * failed ones included, and what an epoch takes under each power limit (job/past/epoch_points.h).
 * Only what a frontier needs is filled in. A batch size that reached its target is left out of
 * the frontier if no limit's epoch is known. Memory is the arena's. FLY_ENOMEM.
 */
struct job_pareto {
    struct workload workload;
    struct pareto_spread *spreads; /* in the order of workload.spec.batches */
};

int job_pareto_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                  struct arena *arena, struct job_pareto *out_pareto, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_PARETO_H
#define FLYBALL_CLI_JOB_PARETO_H

#include "job/profiles.h"
#include "sim/workload.h"

/*
 * A live job on one kind of hardware as the simulator sees a recorded one: for each
 * batch size the epochs that its trials took for each that reached the target, failed
 * ones included, and what an epoch takes under each power limit (job/epoch_points.h).
 * Only what a frontier needs is filled in. Memory is the arena's. FLY_ENOMEM.
 */
int job_pareto_workload(const struct job_history *history, const struct job_profiles *profiles,
                        size_t machine, struct arena *arena, struct workload *out_workload,
                        struct fly_error *out_error);

#endif

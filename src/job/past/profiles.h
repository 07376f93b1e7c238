/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_PROFILES_H
#define FLYBALL_JOB_PAST_PROFILES_H

#include "job/past/history.h"

/* The power profiles that decide limits: the first of each batch size on each machine under the revision
 * that holds. */
struct job_batch_profile {
    size_t machine; /* index into job_history.machines */
    uint32_t batch_size;
    const struct fly_power_point *points; /* limits of one GPU, power of all GPUs */
    size_t count;
    double units_per_epoch; /* as in struct job_profile */
};

struct job_profiles {
    struct job_batch_profile *profiles;
    size_t count;
};

/* Reads the profiles of the history's job into the arena. Errors as job_history_read. */
int job_profiles_read(const struct jobs *jobs, const struct job_history *history, struct arena *arena,
                      struct job_profiles *out_profiles, struct fly_error *out_error);

/* Returns NULL when there is none. */
const struct job_batch_profile *job_profiles_find(const struct job_profiles *profiles, size_t machine,
                                                  uint32_t batch_size);

#endif

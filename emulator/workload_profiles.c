/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles there are, which of the requested ones hold, and what they do. */
#include "emulator/workload_profiles.h"

enum { GROUP_MODE, GROUP_BOTTLENECK, GROUP_WORK, GROUPS };

const struct workload_profile workload_profiles[] = {
    {.id = 0, .priority = 1, .group = GROUP_MODE, .power = 1.0, .speed = 1.0},          /* MAX_P */
    {.id = 1, .priority = 2, .group = GROUP_MODE, .power = 0.92, .speed = 0.98},        /* MAX_Q */
    {.id = 2, .priority = 3, .group = GROUP_BOTTLENECK, .power = 0.985, .speed = 1.0},  /* COMPUTE */
    {.id = 3, .priority = 4, .group = GROUP_BOTTLENECK, .power = 0.97, .speed = 0.995}, /* MEMORY_BOUND */
    {.id = 7, .priority = 5, .group = GROUP_WORK, .power = 0.95, .speed = 0.995},       /* LLM_TRAINING */
    {.id = 13, .priority = 6, .group = GROUP_WORK, .power = 0.97, .speed = 0.99},       /* HPC */
    {.id = 20, .priority = 7, .group = GROUP_WORK, .power = 0.96, .speed = 0.995},      /* TRAINING */
};
const unsigned workload_profile_count = sizeof workload_profiles / sizeof workload_profiles[0];

struct workload_set workloads_supported(const struct emulated_gpu *gpu)
{
    struct workload_set set = {{0}};

    for (unsigned i = 0; i < workload_profile_count && gpu_board(gpu)->has_workloads; i++)
        workload_add(&set, workload_profiles[i].id);
    return set;
}

struct workload_set workloads_conflicting(const struct workload_profile *workload)
{
    struct workload_set set = {{0}};

    for (unsigned i = 0; i < workload_profile_count; i++) {
        if (workload_profiles[i].group == workload->group && workload_profiles[i].id != workload->id)
            workload_add(&set, workload_profiles[i].id);
    }
    return set;
}

struct workload_set workloads_enforced(const struct emulated_gpu *gpu)
{
    struct workload_set set = {{0}};
    bool taken[GROUPS] = {false};

    for (unsigned i = 0; i < workload_profile_count; i++) {
        const struct workload_profile *workload = &workload_profiles[i];

        if (!workload_has(&gpu->requested, workload->id) || taken[workload->group])
            continue;
        taken[workload->group] = true;
        workload_add(&set, workload->id);
    }
    return set;
}

struct workload_effect workload_effect_of(const struct emulated_gpu *gpu)
{
    struct workload_set enforced = workloads_enforced(gpu);
    struct workload_effect effect = {1.0, 1.0};

    for (unsigned i = 0; i < workload_profile_count; i++) {
        if (!workload_has(&enforced, workload_profiles[i].id))
            continue;
        effect.power *= workload_profiles[i].power;
        effect.speed *= workload_profiles[i].speed;
    }
    return effect;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_GROUP_CAMPAIGN_H
#define FLYBALL_SIM_GROUP_CAMPAIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/campaign.h"
#include "sim/world/group_file.h"
#include "sim/world/workload.h"

/*
 * Runs every group of a file with every policy and every seed, on several threads. The results do
 * not depend on the number of threads.
 */
struct group_plan {
    const struct group_file *file; /* borrowed, as everything here */
    const struct workload *workloads;
    const size_t *group_workloads; /* the workload of each group, by index */
    const struct campaign_policy *policies;
    size_t policy_count;
    const uint32_t *seeds;
    size_t seed_count;
    bool seed_from_name; /* each group's seed is the Adler-32 of its name; seed_count is then 1 */
    struct policy_parameters parameters; /* the campaign fills in the seed */
    unsigned threads;
    void (*thread_begun)(void); /* as in crew.h */
    ordered_sink *tries;        /* takes the tries as CSV text, or NULL */
    void *tries_context;
    bool tries_kept;         /* these come as struct try_kept, not as text */
    crew_progress *progress; /* as in crew.h */
    void *progress_context;
};

/* One group, policy and seed: sums over all its tries, scaled by their submissions' runtime_ratio. */
struct group_result {
    double energy_j;
    double time_s;
    double cost_j;
    uint64_t submissions;
    uint64_t tries;
    uint64_t launches;
    uint64_t beside; /* launches while another trial of the group was in flight */
    int ended;       /* 0, or the code with which the job ended before its last submission */
};

enum { GROUP_UNITS_MAX = 16 << 20 };

/* The seed of a group. */
uint32_t group_seed(const struct group_plan *plan, size_t group, size_t seed);

/*
 * Runs the plan. The caller frees `out_results` [group][policy][seed]. Errors as campaign_run,
 * and those of reading the file.
 */
int group_campaign_run(const struct group_plan *plan, struct group_result **out_results,
                       struct fly_error *out_error);

#endif

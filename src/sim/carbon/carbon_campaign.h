/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_CARBON_CAMPAIGN_H
#define FLYBALL_SIM_CARBON_CARBON_CAMPAIGN_H

#include "sim/carbon/carbon_job.h"
#include "sim/crew.h"

/*
 * The same job at many starts under several policies. Starts are spaced evenly over the record:
 * from eight days after its beginning (a forecast looks back that far) to the last one whose
 * bound still ends within it. With a seed they are drawn from that time instead.
 */
enum { CARBON_STARTS_MAX = 100000, CARBON_SKIP_S = 8 * 86400 };

struct carbon_campaign {
    const struct carbon_world *world;
    const enum carbon_policy *policies;
    size_t policy_count;
    size_t starts;
    uint32_t seed; /* 0: evenly spaced */
    unsigned threads;
    void (*thread_begun)(void);
    crew_progress *progress; /* as in crew.h */
    void *progress_context;
};

/* Returns the moment of a start. FLY_EDATA if the record is too short for the job. */
int carbon_campaign_start(const struct carbon_campaign *campaign, size_t start, int64_t *out_start_s,
                          struct fly_error *out_error);

/* Runs the campaign. Outcomes are by policy, then by start; the same for any number of threads. */
int carbon_campaign_run(const struct carbon_campaign *campaign, struct carbon_outcome *outcomes,
                        struct fly_error *out_error);

#endif

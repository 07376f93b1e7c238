/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_TRACE_EXPORT_H
#define FLYBALL_JOB_PAST_TRACE_EXPORT_H

#include "job/past/history.h"

/*
 * A job's history on one machine in the public trace format (sim/world/trace.h), so that the
 * simulator can run the job again: its name is the dataset, network and optimizer are
 * "any".
 *
 *     train   a row per trial that tells what its batch size costs; target_epoch is `nan`
 *             when the target was not reached; with `chosen_only` those that the policy
 *             chose, in whose order `flyball sim job --order recorded` takes them
 *     power   the profiles, per epoch; where a batch size has none that counts epochs,
 *             the means of its trials at each power limit (job_history_limit_w); power is that of one GPU
 */
struct job_trace_sinks {
    job_sink *train;
    void *train_context;
    job_sink *power;
    void *power_context;
    uint64_t *out_unprofiled; /* batch sizes whose power profile never became whole; NULL: not asked */
    bool chosen_only;         /* leaves out what the policy had no say in: controls and pinned trials */
};

/* Whether the policy had a say in a trial. */
bool job_reason_chosen(enum reason reason);

/* FLY_ENOTFOUND without such a machine or without a trial that tells anything; FLY_EUNSUPPORTED where none
 * tells what the default batch size takes under which limit: the simulator begins with that. */
int job_export_trace(const struct jobs *jobs, const char *job, size_t machine,
                     const struct job_trace_sinks *sinks, struct fly_error *out_error);

#endif

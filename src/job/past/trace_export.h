/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_TRACE_EXPORT_H
#define FLYBALL_JOB_PAST_TRACE_EXPORT_H

#include "job/past/history.h"

/*
 * Exports a job's history on one machine in the public trace format (sim/world/trace.h), so that the
 * simulator can run the job again: what ran under the revision that holds. The job's name is the dataset,
 * network and optimizer are "any".
 *
 *     train   a row per trial that shows what its batch size costs; target_epoch is `nan`
 *             when the target was not reached; with `chosen_only` those that the policy
 *             chose, in whose order `flyball sim job --order recorded` takes them
 *     power   the profiles, per epoch; for a batch size without one that counts epochs, the
 *             means of its trials at each power limit (job_history_limit_w); power is that of one GPU
 */
struct job_trace_sinks {
    job_sink *train;
    void *train_context;
    job_sink *power;
    void *power_context;
    uint64_t *out_unprofiled; /* how many batch sizes have an unfinished power profile; NULL: not wanted */
    bool chosen_only;         /* leaves out trials that the policy did not decide: controls and pinned ones */
};

/* Whether the policy decided a trial with that reason. */
bool job_reason_chosen(enum reason reason);

/*
 * Returns FLY_ENOTFOUND when there is no such machine or no trial that shows a cost; FLY_EUNSUPPORTED when no
 * trial shows what the default batch size takes under which limit, with which the simulator begins.
 */
int job_export_trace(const struct jobs *jobs, const char *job, size_t machine,
                     const struct job_trace_sinks *sinks, struct fly_error *out_error);

#endif

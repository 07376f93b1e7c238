/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_SAVING_RUN_H
#define FLYBALL_JOB_PAST_SAVING_RUN_H

#include "job/past/history.h"
#include "job/past/saving_estimate.h"

/* A recurrence as one run: its control, or all the rest of it. */
struct saving_run {
    uint64_t recurrence;
    size_t revision; /* how many had begun before the recurrence; it never falls from run to run */
    bool any;        /* a trial of it ran on this machine */
    bool running;    /* or a trial ran on another machine, or under a later revision */
    bool delivered;
    bool searched;
    bool outdated; /* a trial of it was chosen by an objective or pin that does not hold any more */
    uint64_t epochs;
    double energy_j, time_s, cost_j, metric;
    int64_t ended_us;
    const struct job_row *last;
    enum saving_kind kind;
};

/* Whether a trial is a run of the default that was free to take whatever it took. */
bool saving_is_default(const struct job_history *history, const struct job_row *row);

/* Whether it is known what the run took. */
bool saving_run_counts(const struct saving_run *run);

/*
 * Stores the job's runs on one machine, in order, for the caller to free: of each recurrence the control and
 * the rest, if there are any. Returns 0 or FLY_ENOMEM.
 */
int saving_runs_of(const struct job_history *history, size_t machine, struct saving_run **out_runs,
                   size_t *out_count, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_READ_READ_PRIVATE_H
#define FLYBALL_JOB_READ_READ_PRIVATE_H

#include <flyball/job.h>

#include "job/jobs.h"
#include "job/past/job_frontier.h"

struct fly_jobs {
    struct jobs jobs;    /* without a back end: there is no store of the user's own yet */
    uint64_t generation; /* of forks, when it was opened */
    struct arena listed; /* holds the list */
    struct job_list list;
    struct arena explained; /* holds the newest explanation's texts */
};

struct fly_job {
    struct arena arena; /* holds all else */
    struct job_history history;
    struct job_frontier *frontiers; /* in the order of history.machines */
    uint64_t recurrences, running;
};

/* FLY_ESTATE in a child that was forked after the handle was opened. */
int jobs_handle_check(const struct fly_jobs *jobs, struct fly_error *out_error);

/*
 * Copies as much of an answer as the caller's struct has room for. Both begin with their size. FLY_EUSAGE if
 * the caller's is less than `least`.
 */
int read_give(void *out, const void *answer, size_t least);

/* Microseconds since 1970 in seconds; NAN for 0. */
double read_unix_s(int64_t time_us);

#endif

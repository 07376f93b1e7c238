/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_EPOCH_POINTS_H
#define FLYBALL_JOB_PAST_EPOCH_POINTS_H

#include "job/past/profiles.h"
#include "job/past/saving_estimate.h"

/*
 * What an epoch of one batch size takes under each power limit, as a job's history shows it. That is the
 * profile, scaled to what whole trials took under one limit (including validation and all between the
 * epochs), as long as the scaling leaves the choice of the limit unchanged. Without a profile each limit has
 * what the trials took that ran under it alone. A trial that measured a profile ran under several limits, and
 * counts for none.
 *
 * Tries that were stopped count: their epochs had to be paid for. In a job with a bound on the slowdown they
 * do not, since the bound is on the time of a run that reaches its target.
 *
 * For the default batch size, the epochs that a model takes come only from runs of the default that count as
 * such (savings.h), if one of them reached the target; otherwise from all trials that were not stopped. What
 * these runs took under the highest limit is the point of that limit; all trials contribute to what an epoch
 * takes under another one.
 */
struct epoch_points {
    uint32_t batch_size;
    uint64_t trials;                               /* those that show what the batch size costs */
    uint64_t reached;                              /* of those, how many reached the target */
    uint64_t epochs;                               /* of all of them */
    struct fly_power_point points[JOB_LIMITS_MAX]; /* per epoch: limits of one GPU, power of all GPUs */
    size_t count;                                  /* 0: the time of an epoch is not known */
    struct saving_bounds energy, time;             /* of what a model takes, over the trials */
};

/* Pure. Returns 0 or FLY_ENOMEM. */
int epoch_points_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                    uint32_t batch_size, struct epoch_points *out_points, struct fly_error *out_error);

#endif

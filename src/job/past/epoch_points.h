/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_EPOCH_POINTS_H
#define FLYBALL_JOB_PAST_EPOCH_POINTS_H

#include "job/past/profiles.h"
#include "job/past/saving_estimate.h"

/*
 * What an epoch of one batch size takes under each power limit, as far as a job's
 * history tells: the profile, brought to the level of what whole trials took under one
 * limit (validation and all between the epochs included), as long as that leaves the
 * choice of the limit as it was. Without a profile each limit has what trials took that ran under it
 * alone; one that measured a profile ran under several, and is booked to none.
 *
 * Of the default batch size only runs of the default count that took what they take
 * (savings.h) for how many epochs a model takes, as long as one reached the target; else all that were
 * not stopped. What they took under the highest limit is its point there; what an epoch takes
 * under another one all of its trials tell.
 */
struct epoch_points {
    uint32_t batch_size;
    uint64_t trials;                               /* that tell what the batch size costs */
    uint64_t reached;                              /* of those, its target */
    uint64_t epochs;                               /* of all of them */
    struct fly_power_point points[JOB_LIMITS_MAX]; /* of an epoch: limits of one GPU, power of all */
    size_t count;                                  /* 0: the time of an epoch is not known */
    struct saving_bounds energy, time;             /* of what a model takes, over the trials */
};

/* Pure. FLY_ENOMEM. */
int epoch_points_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                    uint32_t batch_size, struct epoch_points *out_points, struct fly_error *out_error);

#endif

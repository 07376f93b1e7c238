/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_JOB_FRONTIER_H
#define FLYBALL_JOB_PAST_JOB_FRONTIER_H

#include "job/core/decision_numbers.h"
#include "job/past/history.h"
#include "job/past/saving_estimate.h"
#include "model/batch_points.h"

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

/*
 * The operating points of a live job on one kind of hardware, from its own log. Each batch size has the
 * epochs that its trials took per trial that reached the target, failed ones included, times what an epoch
 * takes under each power limit (epoch_points_of). A batch size that reached its target is left out if no
 * limit's epoch is known, or if it does not run any more by the numbers of the newest choice on this
 * hardware: it gives worse models than allowed, is given up or does not fit.
 */
struct job_frontier_batch {
    struct epoch_points epoch; /* with the batch size */
    double epochs;             /* that a model takes; infinity: not known, or the batch size is barred */
    const char *barred; /* why it does not run any more, a clause, so that it is no choice; NULL: it may */
};

struct job_frontier {
    struct job_frontier_batch *batches; /* in the order of the job's batch sizes */
    struct operating_points points;
    struct fly_operating_point reference; /* default batch size and highest limit; the rest is 0 */
    struct fly_objective objective;       /* by which a point is chosen */
    bool lacks_bound;                     /* that objective is without its bound: the default is not known */
    double max_power_w;                   /* for costs (cost.h); 1 where it is not known */
    size_t chosen;                        /* among the points; their count: there is none */
};

/* The same with numbers from the job's log. Errors as job_history_read. */
int job_frontier_read(const struct jobs *jobs, const struct job_history *history,
                      const struct job_profiles *profiles, size_t machine, struct arena *arena,
                      struct job_frontier *out_frontier, struct fly_error *out_error);

/* Why a batch size has no points: a clause for each reason. */
extern const char *const job_frontier_left_out[LEFT_OUT_REASON_COUNT];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_JOB_FRONTIER_H
#define FLYBALL_JOB_PAST_JOB_FRONTIER_H

#include "job/core/decision_numbers.h"
#include "job/past/epoch_points.h"
#include "model/batch_points.h"

/*
 * The operating points of a live job on one kind of hardware, from its own log. Each batch size has the
 * epochs that its trials took per trial that reached the target, failed ones included, times what an epoch
 * takes under each power limit (epoch_points.h). A batch size that reached its target is left out if no
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

/* Pure but for memory of the arena. FLY_ENOMEM. */
int job_frontier_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                    const struct decision_numbers *numbers, struct arena *arena,
                    struct job_frontier *out_frontier, struct fly_error *out_error);

/* The same with numbers from the job's log. Errors as job_history_read. */
int job_frontier_read(const struct jobs *jobs, const struct job_history *history,
                      const struct job_profiles *profiles, size_t machine, struct arena *arena,
                      struct job_frontier *out_frontier, struct fly_error *out_error);

/* Why a batch size has no points: a clause for each reason. */
extern const char *const job_frontier_left_out[LEFT_OUT_REASON_COUNT];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_DRIFT_H
#define FLYBALL_SIM_WORLD_DRIFT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/world/oracle.h"
#include "sim/world/workload.h"

/*
 * Made-up drift over a recorded trace: how the epochs a job needs change from
 * its first recurrence to its last, so that policies can be judged by how they
 * follow. Nothing of it was measured.
 *
 *     shift   the best batch size moves by 4 octaves, evenly over the run
 *     jump    it moves by 3 octaves at half time
 *     sine    it swings by 2 octaves to either side, one and a half times
 *     level   every batch size needs 1.8 times the epochs from half time on;
 *             whoever asks for it raises the job's max_epochs to allow for that
 *
 * Moved by s octaves, a batch size b needs the epochs that b / 2^s needs in the
 * trace (geometrically between its neighbours, constant beyond the ends), times
 * one factor for all that keeps the cost of the best choice. The move is towards
 * the side of the trace's best batch size where there is more room. Batch sizes
 * of which a recorded run fails stay as they are: whether a run fails cannot be
 * moved.
 */
enum drift_kind { DRIFT_NONE, DRIFT_SHIFT, DRIFT_JUMP, DRIFT_SINE, DRIFT_LEVEL, DRIFT_COUNT };

extern const char *const drift_names[]; /* by kind, ended by NULL */

struct drift {
    enum drift_kind kind;
    const struct workload *workload; /* borrowed */
    uint64_t recurrences;
    double direction;          /* 1: towards larger batch sizes; -1: smaller */
    const double *octaves;     /* log2 of each batch size that moves, ascending */
    const double *log_epochs;  /* natural logarithm of its expected epochs */
    const double *log_cost;    /* of one epoch at its best limit */
    const size_t *batches;     /* which it is */
    const size_t *best_points; /* that limit's index */
    size_t count;
    struct optimum unmoved; /* the best of those that do not move; infinite cost where there is none */
};

/* FLY_ENOMEM. Borrows the workload, whose eta must be set. */
int drift_init(struct drift *drift, enum drift_kind kind, const struct workload *workload,
               uint64_t recurrences, struct arena *arena, struct fly_error *out_error);

/* By how much the epochs of a batch size are multiplied in a recurrence; 1 without drift. Pure. */
double drift_factor(const struct drift *drift, uint64_t recurrence, size_t batch);

/* The best choice in a recurrence. Pure. */
struct optimum drift_optimum(const struct drift *drift, uint64_t recurrence);

#endif

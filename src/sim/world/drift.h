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
 * Made-up drift on top of a recorded trace: the epochs that a job needs change from its first
 * recurrence to its last, to test how policies follow. Nothing of it was measured.
 *
 *     shift   the best batch size moves by 4 octaves, evenly over the run
 *     jump    it moves by 3 octaves at half time
 *     sine    it swings by 2 octaves to either side, one and a half times
 *     level   every batch size needs 1.8 times the epochs from half time on
 *     triple  every batch size needs 3 times the epochs from half time on
 *     growth  every batch size needs 3.5 % more epochs in each recurrence, up to 40 times those of
 *             the first
 *     up-down every batch size needs 1.8 times the epochs in the second third of the run
 *
 * With the last four, whoever asks for them raises the job's max_epochs first
 * (drift_raise_max_epochs), or no try could reach its target.
 *
 * Moved by s octaves, a batch size b needs the epochs that b / 2^s needs in the trace (geometric
 * interpolation between its neighbours, constant beyond the ends), times one factor for all that
 * keeps the cost of the best choice. The best batch size moves towards the side of the trace that
 * has more room. Batch sizes with a failed recorded run stay as they are, since a failure cannot
 * be moved.
 */
enum drift_kind {
    DRIFT_NONE,
    DRIFT_SHIFT,
    DRIFT_JUMP,
    DRIFT_SINE,
    DRIFT_LEVEL,
    DRIFT_TRIPLE,
    DRIFT_GROWTH,
    DRIFT_UP_DOWN,
    DRIFT_COUNT
};

extern const char *const drift_names[]; /* by kind, ended by NULL */

struct drift {
    enum drift_kind kind;
    const struct workload *workload; /* borrowed */
    uint64_t recurrences;
    double direction;          /* 1: towards larger batch sizes; -1: smaller */
    const double *octaves;     /* log2 of each batch size that moves, ascending */
    const double *log_epochs;  /* natural logarithms of their expected epochs */
    const double *log_cost;    /* natural logarithms of the cost of one epoch at the best limit */
    const size_t *batches;     /* their indices */
    const size_t *best_points; /* indices of those limits */
    size_t count;
    struct optimum unmoved; /* the best of those that do not move; infinite cost if there is none */
};

/* Raises max_epochs as many times as the epochs grow over the run. */
void drift_raise_max_epochs(struct workload *workload, enum drift_kind kind, uint64_t recurrences);

/*
 * Initialises the drift. Borrows the workload, whose eta must be set. FLY_ENOMEM, or FLY_EUSAGE for a
 * workload with a bound on the slowdown: what is best within it is not known where costs drift.
 */
int drift_init(struct drift *drift, enum drift_kind kind, const struct workload *workload,
               uint64_t recurrences, struct arena *arena, struct fly_error *out_error);

/* Returns the factor for the epochs of a batch size in a recurrence; 1 without drift. Pure. */
double drift_factor(const struct drift *drift, uint64_t recurrence, size_t batch);

/* Returns the best choice in a recurrence. Pure. */
struct optimum drift_optimum(const struct drift *drift, uint64_t recurrence);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_JOB_ROWS_H
#define FLYBALL_SIM_WORLD_JOB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/world/job_description.h"
#include "sim/world/trace.h"

/*
 * The rows of a trace that belong to one job: same dataset, network and optimizer. Borrows the
 * trace; the lists live in the arena.
 */
struct job_rows {
    const struct trace *trace;
    const struct train_row **train; /* in file order */
    size_t train_count;
    const struct power_row **power; /* in file order */
    size_t power_count;
};

/* Selects the rows. FLY_ENOMEM; finding no rows is no error. */
int job_rows_cut(const struct trace *trace, const struct job_description *job, struct arena *arena,
                 struct job_rows *out_rows, struct fly_error *out_error);

/* Return whether the job was trained with a batch size, and whether its power was recorded with it. */
bool job_rows_trained(const struct job_rows *rows, uint32_t batch_size);
bool job_rows_powered(const struct job_rows *rows, uint32_t batch_size);

/* Returns whether some batch size was trained and has its power recorded. */
bool job_rows_joined(const struct job_rows *rows);

/* The batch sizes the job was trained with, ascending, each once; NULL without memory. */
uint32_t *job_rows_batch_sizes(const struct job_rows *rows, struct arena *arena, size_t *out_count);

/*
 * Returns the target metric nearest to `target` among the job's runs, the lower one of two that
 * are equally near; NaN without runs.
 */
double job_rows_nearest_target(const struct job_rows *rows, double target);

#endif

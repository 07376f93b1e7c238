/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_WORKLOAD_H
#define FLYBALL_SIM_WORLD_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/job_spec.h"
#include "sim/world/job_description.h"
#include "sim/world/trace.h"

/*
 * One recurring job on one kind of GPU, selected from a trace: what the simulated world answers
 * when a batch size is trained under a power limit.
 *
 * A batch size belongs to the job if both files have it (an inner join); the others are listed in
 * left_out. Immutable once made, so any number of threads may read it.
 */
struct workload_batch {
    const struct fly_power_point *points; /* per epoch, ascending limits */
    size_t point_count;
    const double *path_epochs; /* epochs to the target of each recorded run, in file order; NaN: never */
    uint32_t path_count;
    double mean_epoch_energy_j; /* over the power limits: what profiling them costs */
    double mean_epoch_time_s;
};

struct workload {
    struct arena arena; /* owns all below */
    const char *gpu;
    struct job_description job;     /* its texts are the caller's */
    struct job_spec spec;           /* whoever simulates sets eta */
    struct workload_batch *batches; /* as spec.batches */
    size_t limit_count;             /* different power limits over all batch sizes */
    size_t fitting;                 /* batch sizes that fit into the GPU, the smallest; 0: all */
    const uint32_t *left_out;       /* batch sizes of the train file without power rows, ascending */
    size_t left_out_count;
};

/*
 * Selects `job` from `trace`. Both may be freed afterwards, except the job's texts. FLY_ENOTFOUND
 * if the trace does not have the job, its target or its default batch size; FLY_EDATA if a batch
 * size that was asked for has no power rows or no run for the target. Call workload_close only
 * after success.
 */
int workload_open(struct workload *workload, const struct trace *trace, const struct job_description *job,
                  struct fly_error *out_error);

void workload_close(struct workload *workload);

/* Returns whether both files have rows of the job's dataset, network and optimizer. */
bool workload_in_trace(const struct trace *trace, const struct job_description *job);

/* Returns the published number of recurrences: twice the batch sizes times the power limits. */
uint64_t workload_recurrences(const struct workload *workload);

/* Returns the index of a limit among a batch's points; point_count if it is not there. */
size_t workload_find_limit(const struct workload_batch *batch, double limit_w);

#endif

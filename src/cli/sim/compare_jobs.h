/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_COMPARE_JOBS_H
#define FLYBALL_CLI_SIM_COMPARE_JOBS_H

#include "base/arena.h"
#include "cli/frame/call.h"
#include "cli/sim/sim_workloads.h"
#include "sim/world/synthetic.h"
#include "sim/world/workload.h"

/*
 * The jobs of `flyball sim compare`: those of the traces on every GPU, then the synthetic ones,
 * kind by kind.
 *
 * Options read: --traces, --gpu and those of sim_workloads_open; --synthetic; --eta.
 */
enum {
    COMPARE_GPUS_MAX = 16,
    COMPARE_SYNTHETIC_MAX = 200, /* of each kind */
    COMPARE_JOBS_MAX = 4096,
    COMPARE_SETS_MAX = COMPARE_JOBS_MAX + SYNTHETIC_COUNT + 2,
};

/* A set of jobs that has rows of its own in the table. */
struct compare_set {
    const char *name; /* "traces", "synthetic", "smooth"; of one job "librispeech on v100" */
    size_t first, count;
};

struct compare_jobs {
    struct arena arena;
    struct sim_workloads sets[COMPARE_GPUS_MAX];
    size_t set_count;
    struct workload *items; /* shallow copies of the sets', and the synthetic ones, which it owns */
    size_t count;
    size_t of_traces; /* the first ones of `items` */
    struct compare_set rows[COMPARE_SETS_MAX];
    size_t row_count;
};

/*
 * Makes them: `synthetic` jobs of each kind. With `each`, every job is a set too. Call
 * compare_jobs_close only after success.
 */
int compare_jobs_open(struct compare_jobs *jobs, const struct cli_call *call, uint32_t synthetic, bool each,
                      struct fly_error *out_error);
void compare_jobs_close(struct compare_jobs *jobs);

#endif

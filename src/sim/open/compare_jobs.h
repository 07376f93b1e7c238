/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_COMPARE_JOBS_H
#define FLYBALL_SIM_OPEN_COMPARE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/open/sim_set.h"
#include "sim/world/synthetic.h"
#include "sim/world/workload.h"

/*
 * The jobs on which policies are compared: those of the traces on every GPU, then the synthetic ones,
 * kind by kind.
 *
 *     compare_jobs_init(&jobs);
 *     ... for each GPU, open jobs.sets[jobs.set_count++] ...
 *     compare_jobs_collect(&jobs, &synthetic, false, out_error);
 *     compare_jobs_close(&jobs);
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
    struct sim_set sets[COMPARE_GPUS_MAX];
    size_t set_count;
    struct workload *items; /* shallow copies of the sets', and the synthetic ones, which it owns */
    size_t count;
    size_t of_traces; /* the first ones of `items` */
    /* Jobs of traces whose default never reaches the target: nothing is told of them, for all figures are in
     * relation to the default. "squad on v100". */
    const char **left_out;
    size_t left_out_count;
    struct compare_set rows[COMPARE_SETS_MAX];
    size_t row_count;
};

/* The synthetic jobs: `number` of each kind. */
struct compare_synthetic {
    enum synthetic_kind kinds[SYNTHETIC_COUNT];
    size_t kind_count;
    uint32_t number;
    double eta;
};

/* The GPUs of traces. */
struct compare_gpus {
    const char *names[COMPARE_GPUS_MAX];
    size_t count;
};

/* Finds the GPUs of which the directory has a power trace, by name. FLY_ENOTFOUND, FLY_ELIMIT. */
int compare_gpus_list(const char *traces, struct arena *arena, struct compare_gpus *gpus,
                      struct fly_error *out_error);

/* Call compare_jobs_close afterwards. */
void compare_jobs_init(struct compare_jobs *jobs);
void compare_jobs_close(struct compare_jobs *jobs);

/*
 * Collects the jobs of the open sets whose default reaches the target, makes the synthetic ones, and names
 * the sets of the table. With `each`, every job is a set too. FLY_EEXHAUSTED if no job is left, FLY_EUSAGE
 * for no jobs, or more than COMPARE_JOBS_MAX.
 */
int compare_jobs_collect(struct compare_jobs *jobs, const struct compare_synthetic *synthetic, bool each,
                         struct fly_error *out_error);

#endif

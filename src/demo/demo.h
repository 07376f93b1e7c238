/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEMO_DEMO_H
#define FLYBALL_DEMO_DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "demo/demo_facts.h"
#include "demo/digits_network.h"
#include "job/past/savings.h"
#include "model/gpu_model.h"
#include "sim/world/workload.h"

/*
 * The demo: recurring jobs with real trainings on an emulated GPU.
 *
 * Real: the network, its data, the accuracy and the epochs that each training takes
 * (digits_network.h). Emulated: the seconds and watts of an epoch (gpu_model.h), for a load far
 * heavier than this network.
 *
 * Two jobs train the same network to the same target:
 *
 *     digits         by default in batches of DEMO_DEFAULT_BATCH
 *     digits-tuned   on a load that the clock bounds, so that no lower limit pays;
 *                    its default is the best choice there is
 *
 * Each runs under the policy and under the default, with the same luck in the same recurrence and
 * try. Every recurrence is a session over the store (demo_history.h), on a machine in virtual
 * time (demo_machine.h). Then every batch size is trained with DEMO_CHECK_SEEDS fresh seeds. A
 * power limit changes no arithmetic, so these trainings give the cost of every (batch size,
 * limit). The results do not depend on the number of threads.
 */
/* One training and what it took. */
struct demo_try {
    uint64_t recurrence; /* from 0; in a check: its seed */
    uint64_t number;     /* counts the tries of the whole job, from 0 */
    uint32_t batch_size;
    double power_limit_w;
    bool reached;
    double energy_j;
    double time_s;
    double cost_j;
    uint32_t epochs;
    uint32_t correct; /* of DIGITS_HELD_OUT, at the end */
};

/* A policy's history of one job. */
struct demo_run {
    struct demo_try *tries; /* owned */
    size_t count;
    size_t completed; /* recurrences that reached the target */
    int ended;        /* 0, or the code with which the job ended before its last recurrence */
    struct fly_error end;
};

struct demo_job {
    const char *name;
    struct gpu_load load;
    struct workload workload;   /* its points hold the time and energy of an epoch */
    struct demo_run chosen;     /* by the policy */
    struct demo_run baseline;   /* the same luck with the default */
    struct demo_try *checks;    /* owned: [batch][limit][seed] */
    struct job_savings savings; /* as the job's log says */
};

struct demo_plan {
    const char *policy;          /* its name, as a job gives it */
    const char *store;           /* address for the jobs' logs, where none of their names may exist yet */
    const char *spool_directory; /* of the sessions */
    uint64_t recurrences;        /* 1 .. DEMO_RECURRENCES_MAX */
    uint32_t seed;
    unsigned threads; /* 1 .. CREW_THREADS_MAX */
    /*
     * `advance`: some trainings are done; called from any thread. `tick`: called by the caller's
     * thread, ten times a second. NULL: not called.
     */
    void (*advance)(void *context);
    void (*tick)(void *context);
    void *progress_context;
};

struct demo {
    struct demo_plan plan;
    struct demo_job jobs[DEMO_JOBS];
    struct digits_result trained[DEMO_BATCHES][DEMO_CHECK_SEEDS]; /* by the check */
};

/* Returns how often `advance` is called at most. */
uint64_t demo_advances(const struct demo_plan *plan);

/* How many power limits a job's choices have, and a choice's trainings in the check. */
size_t demo_limit_count(const struct demo_job *job);
const struct demo_try *demo_checks(const struct demo_job *job, size_t batch, size_t limit);

/*
 * Returns the cost of a recurrence at a choice: the cost of all its checks divided by how many
 * reached the target; infinite if none did.
 */
double demo_check_cost_j(const struct demo_job *job, size_t batch, size_t limit);

/*
 * Runs the demo. FLY_ENOMEM; FLY_ECONFLICT if the store already has its jobs; and errors that
 * prevent a session. A recurrence without a model is a result. Call demo_free also after failure.
 */
int demo_run(const struct demo_plan *plan, struct demo *out_demo, struct fly_error *out_error);

void demo_free(struct demo *demo);

#endif

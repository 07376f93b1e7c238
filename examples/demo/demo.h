/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_DEMO_H
#define FLYBALL_EXAMPLES_DEMO_DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/flyball.h>

#include "demo/digits_network.h"
#include "demo/gpu.h"

/*
 * The demo: recurring jobs with real trainings on an emulated GPU.
 *
 * Real: the network, its data, the accuracy and the epochs that each training takes
 * (digits_network.h). Emulated: the seconds and watts of an epoch (gpu.h).
 *
 * Two jobs train the same network to the same target:
 *
 *     digits         by default in batches of DEMO_DEFAULT_BATCH
 *     digits-tuned   on a load that the clock bounds, so that no lower limit pays;
 *                    its default is the best choice there is
 *
 * Each runs under the policy and under the default, as `NAME-default`, with the same luck in the
 * same recurrence and try. Every recurrence is a session (<flyball/session.h>) over the store, as
 * in a training program. Then every batch size is trained with DEMO_CHECK_SEEDS fresh seeds. A
 * power limit changes no arithmetic, so these trainings give the cost of every (batch size,
 * limit). The results do not depend on the number of threads.
 */
enum {
    DEMO_JOBS = 2,
    DEMO_BATCHES = 8, /* 4, 8, ..., 512 */
    DEMO_SMALLEST_BATCH = 4,
    DEMO_DEFAULT_BATCH = 256,
    DEMO_MAX_EPOCHS = 120,
    DEMO_TARGET = 342, /* of DIGITS_HELD_OUT: 95 % */
    DEMO_CHECK_SEEDS = 20,
    DEMO_RECURRENCES_MAX = 1000,
    DEMO_TRIES = 3,         /* of a recurrence; the last one runs the best known choice */
    DEMO_CONTROL_EVERY = 8, /* of so many recurrences one runs the default, to measure what is saved */
    DEMO_THREADS_MAX = 256,
};
#define DEMO_ETA 0.5
#define DEMO_BETA 3.0 /* instead of 2, since equal trainings differ by a fifth from seed to seed */

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
    char end[FLY_ERROR_TEXT_MAX];
};

/* A (batch size, power limit), by index: the size is DEMO_SMALLEST_BATCH << batch. */
struct demo_choice {
    size_t batch;
    size_t limit;
};

struct demo_job {
    const char *name;
    double clock_share;
    size_t default_batch;     /* index; the default limit is the highest */
    struct demo_run chosen;   /* by the policy */
    struct demo_run baseline; /* the same luck with the default */
    struct demo_try checks[DEMO_BATCHES][GPU_LIMITS][DEMO_CHECK_SEEDS];
    struct fly_job_saving saving; /* as the job's log says; without its texts */
    char doubt[256];              /* why it is not known */
};

struct demo_plan {
    const char *policy;   /* its name, as a job gives it */
    const char *store;    /* address for the jobs' logs, where none of their names may exist yet */
    uint64_t recurrences; /* 1 .. DEMO_RECURRENCES_MAX */
    uint32_t seed;
    unsigned threads; /* 1 .. DEMO_THREADS_MAX */
    bool progress;    /* shown on standard error */
};

struct demo {
    struct demo_plan plan;
    struct demo_job jobs[DEMO_JOBS];
    struct digits_result trained[DEMO_BATCHES][DEMO_CHECK_SEEDS]; /* by the check */
};

/*
 * Runs the demo. FLY_ENOMEM; FLY_ECONFLICT if the store already has its jobs; and errors that
 * prevent a session. A recurrence without a model is a result. Call demo_free also after failure.
 */
int demo_run(const struct demo_plan *plan, struct demo *out_demo, struct fly_error *out_error);

void demo_free(struct demo *demo);

/* Tells that one more training is done. Thread-safe. */
void demo_advance(const struct demo *demo);

/* Stores code and text, and returns the code. */
int demo_fail(struct fly_error *out_error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Parts of demo_run, in history.c. */

/* FLY_ECONFLICT if the store already has one of the demo's jobs, or the error of opening it. */
int history_check(const struct demo *demo, struct fly_error *out_error);

/*
 * Runs all recurrences of a job. FLY_ENOMEM, or the error that kept a session from its store. A
 * recurrence without a model ends both sides early, which is a result.
 */
int history_run(const struct demo *demo, struct demo_job *job, struct fly_error *out_error);

/* Reads from the job's log what it saves, as `flyball job show` does. */
int history_saving(const struct demo_plan *plan, struct demo_job *job, struct fly_error *out_error);

#endif

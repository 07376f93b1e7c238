/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_ENVIRONMENT_H
#define FLYBALL_SIM_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/generator.h"
#include "base/numpy_random.h"
#include "base/philox.h"
#include "sim/workload.h"

/*
 * The simulated world: which recorded run a training turns out to be.
 *
 * With the product's generator the run depends on (seed, job, recurrence, try,
 * batch size) alone, so policies that are compared share their luck. With the
 * published generator the runs come from one sequence in the order in which
 * they are drawn, as in the published code.
 */
struct environment {
    const struct workload *workload; /* borrowed */
    enum generator generator;
    struct philox_key key;
    struct numpy_random random;
};

/* What happened in one training. */
struct training {
    bool ran;      /* false: refused before its first epoch */
    bool reached;  /* its target */
    double epochs; /* trained */
    double energy_j;
    double time_s;
};

void environment_init(struct environment *environment, const struct workload *workload, uint32_t seed,
                      enum generator generator);

/* Draws the recorded run of this training: an index below its batch size's path_count. */
uint32_t environment_draw_path(struct environment *environment, uint64_t recurrence, uint32_t try_number,
                               size_t batch);

/*
 * Trains along `path` for at most `epoch_cap` epochs under the power limit at
 * index `point`. With `profiling` the first epoch is shared evenly among all
 * limits. Pure.
 */
struct training environment_train(const struct workload *workload, size_t batch, size_t point, uint32_t path,
                                  uint32_t epoch_cap, bool profiling);

/* The same for a training that reaches its target in `target_epoch`, from 1; NaN: never. */
struct training environment_train_until(const struct workload *workload, size_t batch, size_t point,
                                        double target_epoch, uint32_t epoch_cap, bool profiling);

#endif

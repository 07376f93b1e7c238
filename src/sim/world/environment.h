/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_ENVIRONMENT_H
#define FLYBALL_SIM_WORLD_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/math/generator.h"
#include "base/math/numpy_random.h"
#include "base/math/philox.h"
#include "sim/world/drift.h"
#include "sim/world/workload.h"

/*
 * The simulated world: which recorded run a training turns out to be.
 *
 * With the product's generator the run depends on (seed, job, recurrence, try,
 * batch size) alone, so policies that are compared share their luck. With the
 * published generator the runs come from one sequence in the order in which
 * they are drawn, as in the published code.
 */
struct training_order {
    uint64_t recurrence;
    uint32_t try_number; /* within the recurrence, from 0 */
    size_t batch;
    uint32_t epoch_cap; /* 0: the training is refused */
};

struct environment {
    const struct workload *workload; /* borrowed */
    enum generator generator;
    struct philox_key key;
    struct numpy_random random;
    const struct drift *drift; /* NULL: none */
    uint32_t *taken;           /* [batch] recorded runs used up: each training is the next one, in the file's
                                  order, and after the last the first; NULL: drawn */
};

/* What happened in one training. */
struct training {
    bool ran;      /* false: refused before its first epoch */
    bool reached;  /* its target */
    double epochs; /* trained */
    double energy_j;
    double time_s;
};

/* `job` keys the product's generator: the job's name, or that of a group of its recurrences. */
void environment_init(struct environment *environment, const struct workload *workload, const char *job,
                      uint32_t seed, enum generator generator);

/* The recorded run of this training, drawn or the next: an index below its batch size's path_count. */
uint32_t environment_draw_path(struct environment *environment, uint64_t recurrence, uint32_t try_number,
                               size_t batch);

/*
 * The epoch, from 1, in which a training would reach its target, or NaN for
 * never. `out_path` is the recorded run it turned out to be.
 */
double environment_target_epoch(struct environment *environment, const struct training_order *order,
                                uint32_t *out_path);

/*
 * Trains towards `target_epoch` for at most `epoch_cap` epochs under the power
 * limit at index `point`. With `profiling` the first epoch is shared evenly
 * among all limits. Pure.
 */
struct training environment_train(const struct workload *workload, size_t batch, size_t point,
                                  double target_epoch, uint32_t epoch_cap, bool profiling);

#endif

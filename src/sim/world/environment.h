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
 * The simulated world: it decides which recorded run a training becomes.
 *
 * With the product's generator the run depends only on (seed, job, recurrence, try, batch size),
 * so compared policies have the same luck. With the published generator the runs come from one
 * sequence in the order in which they are drawn, as in the published code.
 *
 * The first training of a batch size measures its power profile in a window of its first epoch,
 * which is shared evenly among all limits; the rest of that epoch runs at the limit of the
 * training. `profile_window` is the window's share of the epoch, above 0 and at most 1. A policy
 * may leave the batch size when it knows the profile, by allowing it no epoch: the training then
 * costs the window alone, and says nothing of the epochs that the target needs. With 0 the window
 * is the whole epoch, and a training that is left costs nothing, as in the published code.
 *
 * `crash_share` of the trainings crash, each at a place of their way that is uniform. Which ones do
 * depends on (seed, job, recurrence, try) alone, so that it meets every policy at the same time.
 */
struct training_order {
    uint64_t recurrence;
    uint32_t try_number; /* within the recurrence, from 0 */
    size_t batch;
    uint32_t epoch_cap; /* 0: the training is refused */
};

struct bound_watch; /* sim/bound_watch.h */

struct environment {
    const struct workload *workload; /* borrowed */
    enum generator generator;
    struct philox_key key;
    struct numpy_random random;
    const struct drift *drift; /* NULL: none */
    double profile_window;     /* as above */
    double crash_share;        /* of the trainings; below 1 */
    struct bound_watch *watch; /* borrowed: heeds the job's bound for its policy; NULL: none */
    size_t excluded;           /* the smallest batch size that was found not to fit; 0: none */
    uint32_t *taken; /* [batch] recorded runs used up: each training takes the next one in the file's order,
                        and after the last the first; NULL: runs are drawn */
};

/* What happened in one training. */
struct training {
    bool ran;      /* false: it was refused before its first epoch, or left after its profile */
    bool reached;  /* its target */
    double epochs; /* trained */
    double energy_j;
    double time_s;
};

/*
 * Initialises it. `job` keys the product's generator: the job's name, or the name of a group of
 * its recurrences.
 */
void environment_init(struct environment *environment, const struct workload *workload, const char *job,
                      uint32_t seed, enum generator generator);

/*
 * Returns the recorded run of this training, drawn or the next one: an index below its batch
 * size's path_count.
 */
uint32_t environment_draw_path(struct environment *environment, uint64_t recurrence, uint32_t try_number,
                               size_t batch);

/*
 * Returns the epoch, from 1, in which a training would reach its target, or NaN for never.
 * `out_path` is the recorded run that it takes.
 */
double environment_target_epoch(struct environment *environment, const struct training_order *order,
                                uint32_t *out_path);

/* Returns whether this training crashes, and after which share of its way, 0 to 1. Pure. */
bool environment_crashes(const struct environment *environment, uint64_t recurrence, uint32_t try_number,
                         double *out_share);

/* Returns how many times a recurrence costs in the mean what it costs without crashes. Pure. */
double environment_crash_factor(double crash_share);

/* Returns the share of its first epoch that a training profiles, if it must; 0 if it does not. Pure. */
double environment_profiled(const struct environment *environment, bool profiling, uint32_t epoch_cap);

/*
 * Trains towards `target_epoch` for at most `epoch_cap` epochs under the power
 * limit at index `point`. `profiled`, 0 to 1, is the share of the first epoch
 * that is shared evenly among all limits. Pure. Inline: its result is taken apart at once, in every
 * recurrence.
 */
static inline struct training environment_train(const struct workload *workload, size_t batch, size_t point,
                                                double target_epoch, uint32_t epoch_cap, double profiled)
{
    const struct workload_batch *trained = &workload->batches[batch];
    const struct fly_power_point *epoch = &trained->points[point];
    double epoch_energy_j = epoch->time_s * epoch->power_w;
    struct training training = {.ran = epoch_cap > 0};
    double at_limit = 0.0; /* epochs */

    if (training.ran) {
        training.reached = target_epoch <= (double)epoch_cap; /* false for NaN */
        training.epochs = training.reached ? target_epoch : (double)epoch_cap;
        at_limit = training.epochs - profiled;
    }
    training.energy_j = profiled * trained->mean_epoch_energy_j + epoch_energy_j * at_limit;
    training.time_s = profiled * trained->mean_epoch_time_s + epoch->time_s * at_limit;
    return training;
}

#endif

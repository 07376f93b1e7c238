/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/environment.h"

#include <math.h>

/* Leaves room for the few extra draws that a rejection in one try costs. */
enum { DRAWS_PER_TRY = 1 << 16, CRASHES = 0x7ffffe00 /* the stream of crashes; no batch size is so large */ };

void environment_init(struct environment *environment, const struct workload *workload, const char *job,
                      uint32_t seed, enum generator generator)
{
    *environment = (struct environment){
        .workload = workload,
        .generator = generator,
        .key = philox_key(seed, job),
        .random = numpy_random_seed(seed),
    };
}

uint32_t environment_draw_path(struct environment *environment, uint64_t recurrence, uint32_t try_number,
                               size_t batch)
{
    uint32_t count = environment->workload->batches[batch].path_count;
    struct philox philox;

    if (environment->taken != NULL)
        return environment->taken[batch]++ % count;
    if (environment->generator == GENERATOR_NUMPY)
        return numpy_random_choice(&environment->random, count);
    /* Each batch size has a stream of its own; stream 0 is the policies'. */
    philox = philox_open(environment->key, environment->workload->spec.batches[batch].size, recurrence,
                         try_number * DRAWS_PER_TRY);
    return philox_below(&philox, count);
}

double environment_target_epoch(struct environment *environment, const struct training_order *order,
                                uint32_t *out_path)
{
    double factor = 1.0;

    *out_path = 0;
    if (environment->drift != NULL)
        factor = drift_factor(environment->drift, order->recurrence, order->batch);
    if (environment->taken != NULL && order->epoch_cap == 0) /* refused: no run is used up */
        return NAN;
    *out_path = environment_draw_path(environment, order->recurrence, order->try_number, order->batch);
    return environment->workload->batches[order->batch].path_epochs[*out_path] * factor;
}

bool environment_crashes(const struct environment *environment, uint64_t recurrence, uint32_t try_number,
                         double *out_share)
{
    struct philox draws = philox_open(environment->key, CRASHES, recurrence, try_number * DRAWS_PER_TRY);
    double drawn = (double)(philox_u64(&draws) >> 11) * 0x1p-53;

    *out_share = (double)(philox_u64(&draws) >> 11) * 0x1p-53;
    return drawn < environment->crash_share;
}

double environment_crash_factor(double crash_share)
{
    /* crash_share / (1 - crash_share) crashes come before the training that does not, half of its cost each.
     */
    return 1.0 + 0.5 * crash_share / (1.0 - crash_share);
}

double environment_profiled(const struct environment *environment, bool profiling, uint32_t epoch_cap)
{
    if (!profiling)
        return 0.0;
    if (environment->profile_window > 0.0)
        return environment->profile_window;
    return epoch_cap > 0 ? 1.0 : 0.0;
}

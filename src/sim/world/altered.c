/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/altered.h"

#include <math.h>
#include <string.h>

#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "base/math/ziggurat.h"

/* Streams of a job's draws, apart from those of its batch sizes. */
enum { MEMORY = 0x7fffff00, LEARNING_RATE };

static const double steepest = 0.35, scatter = 0.1, natural_log_of_2 = 0x1.62e42fefa39efp-1;

static struct philox open_draws(const struct workload *workload, uint32_t stream)
{
    return philox_open(philox_key(0, workload->job.name), stream, 0, 0);
}

/* U(0, 1) */
static double uniform(struct philox *draws)
{
    return (double)(philox_u64(draws) >> 11) * 0x1p-53;
}

/* Gives the copy a list of batch sizes of its own. */
static struct workload_batch *own_batches(struct workload *workload, struct arena *arena)
{
    size_t count = workload->spec.batch_count;
    struct workload_batch *batches = arena_alloc(arena, count, sizeof batches[0]);

    if (batches != NULL) {
        memcpy(batches, workload->batches, count * sizeof batches[0]);
        workload->batches = batches;
    }
    return batches;
}

/* Gives a batch size runs of factor times the epochs; a factor of NaN for none that reach the target. */
static bool change_runs(struct workload_batch *batch, double factor, struct arena *arena)
{
    double *epochs = arena_alloc(arena, batch->path_count, sizeof epochs[0]);

    for (uint32_t i = 0; epochs != NULL && i < batch->path_count; i++) {
        double changed = floor(batch->path_epochs[i] * factor + 0.5);

        epochs[i] = changed < 1.0 ? 1.0 : changed;
    }
    batch->path_epochs = epochs;
    return epochs != NULL;
}

int altered_memory(struct workload *workload, struct arena *arena, struct fly_error *out_error)
{
    struct philox draws = open_draws(workload, MEMORY);
    size_t first = workload->spec.default_batch + 1, count = workload->spec.batch_count;
    struct workload_batch *batches;

    if (first == count)
        return 0;
    first += philox_below(&draws, (uint32_t)(count - first));
    batches = own_batches(workload, arena);
    if (batches == NULL)
        return error_no_memory(out_error);
    workload->fitting = first;
    for (size_t i = first; i < count; i++) {
        if (!change_runs(&batches[i], NAN, arena))
            return error_no_memory(out_error);
    }
    return 0;
}

int altered_learning_rate(struct workload *workload, struct arena *arena, struct fly_error *out_error)
{
    const struct job_spec *spec = &workload->spec;
    struct philox draws = open_draws(workload, LEARNING_RATE);
    double smaller = steepest * uniform(&draws), larger = steepest * uniform(&draws);
    struct workload_batch *batches = own_batches(workload, arena);

    if (batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < spec->batch_count; i++) {
        double octaves =
            portable_log((double)spec->batches[i].size / spec->batches[spec->default_batch].size) /
            natural_log_of_2;
        double z = ziggurat_normal(ziggurat_tables(), philox_u64(&draws), philox_source, &draws);
        double slope = octaves < 0.0 ? smaller : larger;

        if (i != spec->default_batch &&
            !change_runs(&batches[i], portable_exp(slope * fabs(octaves) + scatter * z), arena))
            return error_no_memory(out_error);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/job_rows.h"
#include "base/math/order.h"

#include <math.h>
#include <stdlib.h>

int job_rows_cut(const struct trace *trace, const struct job_description *job, struct arena *arena,
                 struct job_rows *out_rows, struct fly_error *out_error)
{
    /*
     * Equal texts of a trace are equal pointers. A text that the trace does not have becomes NULL and
     * equals none.
     */
    const char *dataset = trace_word(trace, job->dataset), *network = trace_word(trace, job->network),
               *optimizer = trace_word(trace, job->optimizer);
    struct job_rows rows = {.trace = trace,
                            .train = arena_alloc(arena, trace->train_count + 1, sizeof rows.train[0]),
                            .power = arena_alloc(arena, trace->power_count + 1, sizeof rows.power[0])};

    if (rows.train == NULL || rows.power == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < trace->train_count; i++) {
        const struct train_row *row = &trace->train[i];

        if (row->dataset == dataset && row->network == network && row->optimizer == optimizer)
            rows.train[rows.train_count++] = row;
    }
    for (size_t i = 0; i < trace->power_count; i++) {
        const struct power_row *row = &trace->power[i];

        if (row->dataset == dataset && row->network == network && row->optimizer == optimizer)
            rows.power[rows.power_count++] = row;
    }
    *out_rows = rows;
    return 0;
}

bool job_rows_trained(const struct job_rows *rows, uint32_t batch_size)
{
    for (size_t i = 0; i < rows->train_count; i++) {
        if (rows->train[i]->batch_size == batch_size)
            return true;
    }
    return false;
}

bool job_rows_powered(const struct job_rows *rows, uint32_t batch_size)
{
    for (size_t i = 0; i < rows->power_count; i++) {
        if (rows->power[i]->batch_size == batch_size)
            return true;
    }
    return false;
}

bool job_rows_joined(const struct job_rows *rows)
{
    for (size_t i = 0; i < rows->power_count; i++) {
        if (job_rows_trained(rows, rows->power[i]->batch_size))
            return true;
    }
    return false;
}

uint32_t *job_rows_batch_sizes(const struct job_rows *rows, struct arena *arena, size_t *out_count)
{
    uint32_t *sizes = arena_alloc(arena, rows->train_count + 1, sizeof sizes[0]);
    size_t kept = 0;

    if (sizes == NULL)
        return NULL;
    for (size_t i = 0; i < rows->train_count; i++)
        sizes[i] = rows->train[i]->batch_size;
    qsort(sizes, rows->train_count, sizeof sizes[0], order_u32);
    for (size_t i = 0; i < rows->train_count; i++) {
        if (kept == 0 || sizes[kept - 1] != sizes[i])
            sizes[kept++] = sizes[i];
    }
    *out_count = kept;
    return sizes;
}

double job_rows_nearest_target(const struct job_rows *rows, double target)
{
    double nearest = NAN;

    for (size_t i = 0; i < rows->train_count; i++) {
        double metric = rows->train[i]->target_metric, distance = fabs(metric - target);

        if (isnan(nearest) || distance < fabs(nearest - target) ||
            (distance == fabs(nearest - target) && metric < nearest))
            nearest = metric;
    }
    return nearest;
}

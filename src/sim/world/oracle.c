/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/oracle.h"

#include <math.h>
#include <stdbool.h>

#include <flyball/cost.h>

double oracle_expected_epochs(const struct workload *workload, size_t batch)
{
    const struct workload_batch *trained = &workload->batches[batch];
    double most = workload->spec.max_epochs, epochs = 0.0, reached = 0.0;

    for (uint32_t i = 0; i < trained->path_count; i++) {
        if (trained->path_epochs[i] <= most) {
            epochs += trained->path_epochs[i];
            reached += 1.0;
        }
    }
    return reached > 0.0 ? (epochs + (trained->path_count - reached) * most) / reached : INFINITY;
}

/* The default at its highest limit always is, however its time is rounded. */
static bool within(const struct workload *workload, size_t batch, size_t point, double epochs,
                   double allowed_s)
{
    const struct workload_batch *trained = &workload->batches[batch];

    return trained->points[point].time_s * epochs <= allowed_s ||
           (batch == workload->spec.default_batch && point + 1 == trained->point_count);
}

double oracle_allowed_s(const struct workload *workload)
{
    const struct job_spec *spec = &workload->spec;
    const struct workload_batch *trained = &workload->batches[spec->default_batch];

    if (spec->objective == NULL || isinf(spec->objective->max_slowdown))
        return INFINITY;
    return spec->objective->max_slowdown * trained->points[trained->point_count - 1].time_s *
           oracle_expected_epochs(workload, spec->default_batch);
}

int oracle_find(const struct workload *workload, struct optimum *out_optimum, struct fly_error *out_error)
{
    const struct job_spec *spec = &workload->spec;
    struct optimum best = {.cost_j = INFINITY};
    double allowed_s = oracle_allowed_s(workload);

    for (size_t b = 0; b < spec->batch_count; b++) {
        double epochs = oracle_expected_epochs(workload, b);

        for (size_t p = workload->batches[b].point_count; p-- > 0;) {
            const struct fly_power_point *point = &workload->batches[b].points[p];
            double cost_j =
                fly_cost(spec->eta, spec->max_power_w, point->time_s * point->power_w, point->time_s) *
                epochs;

            if (cost_j < best.cost_j && within(workload, b, p, epochs, allowed_s))
                best = (struct optimum){b, p, cost_j};
        }
    }
    if (isinf(best.cost_j))
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "no batch size of job '%s' reaches its target within %u epochs in the trace; choose another "
            "target or more epochs",
            spec->name, spec->max_epochs);
    *out_optimum = best;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_pareto.h"

#include <math.h>

#include <flyball/pareto.h>

#include "base/error.h"

static const char basis[] =
    "time and energy to the target are expected values over the recorded runs, from one "
    "measurement of power and epoch time for each batch size and power limit";

struct pareto_source sim_pareto_source(const char *traces)
{
    return (struct pareto_source){
        .schema = "flyball.sim.pareto/1",
        .subject_key = "workload",
        .place_key = "traces",
        .place = traces,
        .from = "the traces in",
        .basis = basis,
        .picture_from = "the recorded runs",
    };
}

int sim_pareto_choose(struct pareto_result *result, struct fly_error *out_error)
{
    const struct operating_points *points = result->points;
    const struct job_spec *spec = &result->workload->spec;
    bool known = points->count > 0 && pareto_default_known(result);

    if (points->count == 0)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "no batch size of job '%s' reaches its target within %u epochs in the traces; choose "
            "another target or more epochs",
            spec->name, spec->max_epochs);
    if (!known && isfinite(result->objective.max_slowdown))
        return error_set(out_error, FLY_EEXHAUSTED,
                         "the default batch size %u of job '%s' is not known to reach its target, so no "
                         "slowdown can be measured by it; leave out --max-slowdown or give another "
                         "--default-batch-size",
                         spec->batches[spec->default_batch].size, spec->name);
    return fly_pareto_choose(points->points, points->count, &result->objective, spec->max_power_w,
                             known ? points->points[points->default_point].time_s : NAN, &result->chosen,
                             out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/pareto_spread.h"

#include <math.h>

#include "job/past/savings.h"

const char pareto_spread_few[] = "it takes four trials of the batch size, and one that reached the target";

const struct pareto_spread *pareto_spread_of(const struct pareto_result *result, size_t point)
{
    static const struct pareto_spread none = {0, {NAN, NAN}, {NAN, NAN}, NULL};
    const struct job_spec *spec = &result->workload->spec;

    for (size_t i = 0; result->spreads != NULL && i < spec->batch_count; i++) {
        if (spec->batches[i].size == result->points->points[point].batch_size)
            return &result->spreads[i];
    }
    return &none;
}

static struct pareto_range range_of(double value, const struct saving_bounds *bounds)
{
    return (struct pareto_range){.low = saving_bounds_low(value, bounds),
                                 .high = saving_bounds_high(value, bounds)};
}

struct pareto_range pareto_spread_time(const struct pareto_result *result, size_t point)
{
    return range_of(result->points->points[point].time_s, &pareto_spread_of(result, point)->time);
}

struct pareto_range pareto_spread_energy(const struct pareto_result *result, size_t point)
{
    return range_of(result->points->points[point].energy_j, &pareto_spread_of(result, point)->energy);
}

/* The errors of the two are independent: they add up as squares. */
static struct fly_job_range saving_of(double ours, const struct saving_bounds *our, double theirs,
                                      const struct saving_bounds *their)
{
    double difference = log(ours / theirs);

    return (struct fly_job_range){-expm1(difference), -expm1(difference + hypot(our->above, their->below)),
                                  -expm1(difference - hypot(our->below, their->above))};
}

static bool is_bounded(const struct pareto_result *result, size_t point)
{
    return result->savings != NULL && pareto_change_known(result) && point != result->points->default_point;
}

struct fly_job_range pareto_time_saving(const struct pareto_result *result, size_t point)
{
    const struct operating_points *points = result->points;

    if (!is_bounded(result, point))
        return (struct fly_job_range){NAN, NAN, NAN};
    return saving_of(points->points[point].time_s, &pareto_spread_of(result, point)->time,
                     points->points[points->default_point].time_s,
                     &pareto_spread_of(result, points->default_point)->time);
}

struct fly_job_range pareto_energy_saving(const struct pareto_result *result, size_t point)
{
    const struct operating_points *points = result->points;

    if (!is_bounded(result, point))
        return (struct fly_job_range){NAN, NAN, NAN};
    return saving_of(points->points[point].energy_j, &pareto_spread_of(result, point)->energy,
                     points->points[points->default_point].energy_j,
                     &pareto_spread_of(result, points->default_point)->energy);
}

const char *pareto_spread_doubt(const struct pareto_result *result, size_t point)
{
    if (!pareto_default_known(result))
        return "the default batch size is not known to reach the target";
    if (point == result->points->default_point)
        return "it is the default";
    if (result->savings != NULL && !result->savings->known)
        return saving_doubt_text(result->savings->doubt);
    return "it takes four trials of the batch size and of the default, and one of each that reached the "
           "target";
}

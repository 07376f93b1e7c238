/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/uncertainty.h"

#include <math.h>

double uncertainty_edges_j(double a_j, double b_j)
{
    double less = fmin(a_j, b_j), more = fmax(a_j, b_j);
    double both = 0.2 * less * more - (more - less) * (more - less);
    double half;

    /* The distribution is a trapezoid; which of its parts the percentile lies in gives three cases. */
    if (less < 0.1 * more)
        return 0.95 * more - 0.5 * less;
    if (both >= 0.0) {
        half = 0.5 * (more + less - sqrt(both));
        if (half <= less)
            return half;
    }
    return more - sqrt(0.1 * less * more);
}

double uncertainty_ages_j(const struct uncertainty_edge *begin, const struct uncertainty_edge *end)
{
    double least_j = begin->power_w * begin->age_low_s - end->power_w * end->age_low_s;

    return fabs(least_j) + uncertainty_edges_j(begin->power_w * (begin->age_high_s - begin->age_low_s),
                                               end->power_w * (end->age_high_s - end->age_low_s));
}

/*
 * The unseen u of a period is taken to be as the seen part is. It is off by u
 * times the difference of two means, whose variance is that among readings, and
 * a third of it more where the load changes many times in u; less where it
 * changes rarely. Errors of neighbouring periods may go together for a while, as
 * where the load nearly keeps step with the sensor: in a long window that
 * averages out, in one of few periods it does not. Where the sensor sees all,
 * noise is left. 1.96 standard deviations make 95 %.
 */
static const double alone = 0.85, together = 3.0;

double uncertainty_unseen_j(const struct uncertainty_sensor *sensor, double length_s)
{
    double seen_s = fmin(sensor->window_s, sensor->period_s), unseen_s = sensor->period_s - seen_s;
    /* Periods within one sample of ours are as one. */
    double periods = length_s / fmax(sensor->period_s, sensor->apart_s);
    double variance_j2 =
        (alone * periods + fmin(together, periods)) * unseen_s * unseen_s * sensor->local_w2 +
        periods * seen_s * sensor->period_s * sensor->noise_w2;

    return 1.96 * sqrt(variance_j2);
}

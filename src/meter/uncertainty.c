/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/uncertainty.h"

#include <math.h>

/*
 * What two edges miss, a U - b V with U and V uniform in 0 .. 1, is spread widest
 * for one of them alone: 0.95 of it, and down to 0.78 where they are alike. A
 * window may begin or end with work, so that is not relied on.
 */
double uncertainty_ages_j(const struct uncertainty_edge *begin, const struct uncertainty_edge *end)
{
    double least_j = begin->power_w * begin->age_low_s - end->power_w * end->age_low_s;

    return fabs(least_j) + 0.95 * fmax(begin->power_w * (begin->age_high_s - begin->age_low_s),
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/uncertainty.h"

#include <math.h>

/*
 * The error at two edges, a U - b V with U and V uniform in 0 .. 1, spreads widest if one edge
 * dominates: then it is 0.95 of that edge; if both are alike it is down to 0.78. A window may
 * begin or end with work, so the formula assumes the worst case.
 */
double uncertainty_ages_j(const struct uncertainty_edge *begin, const struct uncertainty_edge *end)
{
    double least_j = begin->power_w * begin->age_low_s - end->power_w * end->age_low_s;

    return fabs(least_j) + 0.95 * fmax(begin->power_w * (begin->age_high_s - begin->age_low_s),
                                       end->power_w * (end->age_high_s - end->age_low_s));
}

/*
 * The unseen part u of a period is assumed to be like the seen part. The error is u times the
 * difference of two means. Its variance is that among readings, and a third more if the load
 * changes many times in u; less if it changes rarely. Errors of neighbouring periods may be
 * correlated for a while, for example if the load runs nearly in step with the sensor: in a long
 * window that averages out, in one of few periods it does not. If the sensor sees everything,
 * only noise is left. Its weight makes up for what of it is not in the first part, and for how well
 * a minute of readings tells it. 1.96 standard deviations make 95 %.
 */
static const double alone = 0.85, together = 3.0, noisy = 1.2;

double uncertainty_unseen_j(const struct uncertainty_sensor *sensor, double length_s)
{
    double seen_s = fmin(sensor->window_s, sensor->period_s), unseen_s = sensor->period_s - seen_s;
    /* Periods within one sample of the meter count as one. */
    double periods = length_s / fmax(sensor->period_s, sensor->apart_s);
    double variance_j2 =
        (alone * periods + fmin(together, periods)) * unseen_s * unseen_s * sensor->local_w2 +
        noisy * periods * seen_s * (sensor->period_s + unseen_s) * sensor->noise_w2;

    return 1.96 * sqrt(variance_j2);
}

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
 * What was seen says nothing of what was not but through their variance: a mean
 * over the seen part stands for the unseen u, which has three such parts in the
 * worst sensor known, so that each period is off by u with a variance of 4/3 of
 * that among readings. Where the sensor sees everything, noise is left. Periods
 * are independent of each other, or as far as samples of ours lie further apart,
 * those are; variances add, and 1.96 standard deviations make 95 %.
 */
double uncertainty_unseen_j(const struct uncertainty_sensor *sensor, double length_s)
{
    double seen_s = fmin(sensor->window_s, sensor->period_s), unseen_s = sensor->period_s - seen_s;
    double independent = length_s / fmax(sensor->period_s, sensor->apart_s);
    double variance_j2 = independent * (4.0 / 3.0 * unseen_s * unseen_s * sensor->local_w2 +
                                        seen_s * sensor->period_s * sensor->noise_w2);

    return 1.96 * sqrt(variance_j2);
}

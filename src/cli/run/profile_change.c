/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/profile_change.h"

#include <math.h>

static const double percent = 100, normal_95 = 1.96;

static double energy_j(const struct fly_tuner_point *point)
{
    return point->power_w * point->time_s;
}

double profile_time_change(const struct profile_result *result, const struct fly_tuner_point *point)
{
    return result->highest == NULL ? NAN : (point->time_s / result->highest->time_s - 1) * percent;
}

double profile_energy_change(const struct profile_result *result, const struct fly_tuner_point *point)
{
    if (result->highest == NULL)
        return NAN;
    return (energy_j(point) / energy_j(result->highest) - 1) * percent;
}

double profile_time_change_error(const struct profile_result *result, const struct fly_tuner_point *point)
{
    if (result->highest == NULL || point == result->highest)
        return result->highest == NULL ? NAN : 0;
    return normal_95 * percent * point->time_s / result->highest->time_s *
           hypot(point->time_error, result->highest->time_error);
}

double profile_energy_change_error(const struct profile_result *result, const struct fly_tuner_point *point)
{
    if (result->highest == NULL || point == result->highest)
        return result->highest == NULL ? NAN : 0;
    return percent * energy_j(point) / energy_j(result->highest) *
           hypot(point->energy_error, result->highest->energy_error);
}

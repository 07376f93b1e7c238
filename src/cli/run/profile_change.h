/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_PROFILE_CHANGE_H
#define FLYBALL_CLI_RUN_PROFILE_CHANGE_H

#include "cli/run/profile_result.h"

/* Changes of a step's time and energy against the highest limit, in percent; NAN if that has no valid point.
 */
double profile_time_change(const struct profile_result *result, const struct fly_tuner_point *point);
double profile_energy_change(const struct profile_result *result, const struct fly_tuner_point *point);

/*
 * Return the half widths of the changes' 95 % intervals, from both points'; 0 for the highest
 * limit against itself.
 */
double profile_time_change_error(const struct profile_result *result, const struct fly_tuner_point *point);
double profile_energy_change_error(const struct profile_result *result, const struct fly_tuner_point *point);

/* Why a change is not known. */
#define PROFILE_NO_HIGHEST "the highest limit has no valid point"

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POWER_SELECTOR_H
#define FLYBALL_POWER_SELECTOR_H

#include <stddef.h>

#include <flyball/error.h>
#include <flyball/objective.h>
#include <flyball/power_profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Chooses a power limit from a profile: of the points whose time is within
 * objective.max_slowdown times the time at the profile's highest limit, the one
 * of least score. The score of a point is
 *
 *     energy        power_w * time_s
 *     time          time_s
 *     cost          (eta * power_w + (1 - eta) * max_power_w) * time_s
 *     lowest-limit  limit_w
 *     carbon, money power_w * time_s, since all points are of one grid
 *
 * and ties go to the higher limit. The highest limit always keeps the bound, so
 * there is always a choice.
 *
 * points       count points, count >= 1, in any order
 * max_power_w  as in cost.h; only used for FLY_OBJECTIVE_COST
 * out_index    where in `points` the choice stands
 *
 * FLY_EUSAGE when count is 0, a figure of a point or the objective is out of
 * its range or not finite. O(count). Pure; thread-safe.
 */
FLY_API int fly_power_select(const struct fly_power_point *points, size_t count,
                             const struct fly_objective *objective, double max_power_w, size_t *out_index,
                             struct fly_error *out_error);

#ifdef __cplusplus
}
#endif

#endif

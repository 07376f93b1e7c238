/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PARETO_H
#define FLYBALL_PARETO_H

#include <stddef.h>

#include <flyball/error.h>
#include <flyball/export.h>
#include <flyball/objective.h>
#include <flyball/operating_point.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The energy-time Pareto frontier of a training job.
 *
 * An operating point (batch size, power limit) is on the frontier when no other
 * point needs less of one of time and energy and no more of the other. Every
 * point that is the single best for some eta in [0, 1] is on the frontier; the
 * reverse holds only for the lower convex hull, because cost is linear in time
 * and energy (You et al., NSDI '23, section 2).
 *
 *     struct fly_operating_point points[] = {...};
 *     size_t n = fly_pareto_frontier(points, 63);
 *     // points[0 .. n) is the frontier, fastest first
 */

/*
 * Moves the frontier to the front of `points`, fastest first, and returns its
 * length; the other points follow in unspecified order. Of several points with
 * equal time and energy the one with the lower power limit stays, then the one
 * with the smaller batch size.
 *
 * points  count points; time_s and energy_j finite and > 0 (a point of which
 *         either is unknown must be left out by the caller)
 *
 * O(count log count), no allocation beyond the C library's sort. Reentrant.
 */
FLY_API size_t fly_pareto_frontier(struct fly_operating_point *points, size_t count);

/*
 * The point of least cost (cost.h) for `eta` on a frontier, or NULL when count
 * is 0. Ties go to the faster point. Borrows `frontier`. Pure; thread-safe.
 */
FLY_API const struct fly_operating_point *fly_pareto_best(const struct fly_operating_point *frontier,
                                                          size_t count, double eta, double max_power_w);

/*
 * Chooses an operating point for an objective: of the points whose time is
 * within objective.max_slowdown times `reference_time_s`, the one of least
 *
 *     energy        energy_j
 *     time          time_s
 *     cost          cost (cost.h) for objective.eta
 *     lowest-limit  power_limit_w
 *     carbon, money energy_j, since all points are of one grid
 *
 * Ties go to the faster point, then to less energy, the lower power limit and
 * the smaller batch size, so the choice for energy, time and cost stands on the
 * frontier and does not depend on the order of the points.
 *
 * points            count points in any order, as for fly_pareto_frontier
 * max_power_w       as in cost.h; only used for FLY_OBJECTIVE_COST
 * reference_time_s  of the default batch size at the highest limit, > 0; not
 *                   used without a bound (max_slowdown infinite)
 * out_index         where in `points` the choice stands
 *
 * FLY_EUSAGE when count is 0 or a figure is out of its range or not finite,
 * FLY_EEXHAUSTED when no point keeps the bound. O(count). Pure; thread-safe.
 */
FLY_API int fly_pareto_choose(const struct fly_operating_point *points, size_t count,
                              const struct fly_objective *objective, double max_power_w,
                              double reference_time_s, size_t *out_index, struct fly_error *out_error);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/power_selector.h>

#include <math.h>

#include "base/error.h"
#include "model/objective_check.h"
#include "policy/power_score.h"

double power_score(const struct fly_power_point *point, const struct fly_objective *objective,
                   double max_power_w)
{
    switch (objective->kind) {
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_CARBON: /* all at one time on one grid, so carbon follows energy */
    case FLY_OBJECTIVE_MONEY:
        return point->power_w * point->time_s;
    case FLY_OBJECTIVE_TIME:
        return point->time_s;
    case FLY_OBJECTIVE_COST:
        return (objective->eta * point->power_w + (1.0 - objective->eta) * max_power_w) * point->time_s;
    case FLY_OBJECTIVE_LOWEST_LIMIT:
        return point->limit_w;
    }
    return NAN;
}

static int check_points(const struct fly_power_point *points, size_t count, struct fly_error *out_error)
{
    if (count == 0)
        return error_set(out_error, FLY_EUSAGE,
                         "the power profile is empty; expected at least one power limit");
    for (size_t i = 0; i < count; i++) {
        if (!objective_positive(points[i].limit_w) || !objective_positive(points[i].power_w) ||
            !objective_positive(points[i].time_s))
            return error_set(
                out_error, FLY_EUSAGE,
                "power profile, point %zu: limit %g W, power %g W, time %g s: expected numbers above "
                "0; leave out what is unknown",
                i, points[i].limit_w, points[i].power_w, points[i].time_s);
    }
    return 0;
}

static size_t highest_limit(const struct fly_power_point *points, size_t count)
{
    size_t highest = 0;

    for (size_t i = 1; i < count; i++) {
        if (points[i].limit_w > points[highest].limit_w)
            highest = i;
    }
    return highest;
}

int fly_power_select(const struct fly_power_point *points, size_t count,
                     const struct fly_objective *objective, double max_power_w, size_t *out_index,
                     struct fly_error *out_error)
{
    int code = objective_check(objective, max_power_w, out_error);
    size_t best;
    double allowed_s, least;

    if (code == 0)
        code = check_points(points, count, out_error);
    if (code < 0)
        return code;
    best = highest_limit(points, count);
    allowed_s = objective->max_slowdown * points[best].time_s;
    least = power_score(&points[best], objective, max_power_w);
    for (size_t i = 0; i < count; i++) {
        double score = power_score(&points[i], objective, max_power_w);

        if (points[i].time_s > allowed_s)
            continue;
        if (score < least || (score == least && points[i].limit_w > points[best].limit_w)) {
            best = i;
            least = score;
        }
    }
    *out_index = best;
    return 0;
}

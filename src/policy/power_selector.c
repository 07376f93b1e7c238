/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/power_selector.h>

#include <math.h>
#include <stdbool.h>

#include "base/error.h"

static double score_of(const struct fly_power_point *point, const struct fly_objective *objective,
                       double max_power_w)
{
    switch (objective->kind) {
    case FLY_OBJECTIVE_ENERGY:
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

static bool positive(double value)
{
    return isfinite(value) && value > 0.0;
}

static int check_objective(const struct fly_objective *objective, double max_power_w,
                           struct fly_error *out_error)
{
    if ((unsigned)objective->kind > FLY_OBJECTIVE_LOWEST_LIMIT)
        return error_set(out_error, FLY_EUSAGE, "objective kind %d is unknown", (int)objective->kind);
    if (!(objective->max_slowdown >= 1.0))
        return error_set(out_error, FLY_EUSAGE, "max_slowdown %g: expected a factor from 1, or infinity",
                         objective->max_slowdown);
    if (objective->kind != FLY_OBJECTIVE_COST)
        return 0;
    if (!(objective->eta >= 0.0 && objective->eta <= 1.0))
        return error_set(out_error, FLY_EUSAGE, "eta %g: expected a number from 0 to 1", objective->eta);
    if (!positive(max_power_w))
        return error_set(out_error, FLY_EUSAGE, "max_power_w %g: expected a number above 0", max_power_w);
    return 0;
}

static int check_points(const struct fly_power_point *points, size_t count, struct fly_error *out_error)
{
    if (count == 0)
        return error_set(out_error, FLY_EUSAGE,
                         "the power profile is empty; expected at least one power limit");
    for (size_t i = 0; i < count; i++) {
        if (!positive(points[i].limit_w) || !positive(points[i].power_w) || !positive(points[i].time_s))
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
    int code = check_objective(objective, max_power_w, out_error);
    size_t best;
    double allowed_s, least;

    if (code == 0)
        code = check_points(points, count, out_error);
    if (code < 0)
        return code;
    best = highest_limit(points, count);
    allowed_s = objective->max_slowdown * points[best].time_s;
    least = score_of(&points[best], objective, max_power_w);
    for (size_t i = 0; i < count; i++) {
        double score = score_of(&points[i], objective, max_power_w);

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

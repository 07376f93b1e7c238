/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/power_search_done.h"

#include <math.h>

#include "policy/power_score.h"

/* The noise of a window, a few percent at most, cannot make a better score this much worse. */
static const double clearly_worse = 1.05;
/* Anything less needs a second limit that says so too. */
static const double worse_at_once = 1.10;

static bool is_worse(double last, double above)
{
    return last > clearly_worse && (last > worse_at_once || above > clearly_worse);
}

/* Returns NAN if lower limits are always better. */
static double score(const struct fly_power_point *point, const struct fly_objective *objective,
                    double max_power_w)
{
    return objective->kind == FLY_OBJECTIVE_LOWEST_LIMIT ? NAN : power_score(point, objective, max_power_w);
}

bool power_search_done(const struct power_search_point *points, size_t count,
                       const struct fly_objective *objective, double max_power_w)
{
    const struct fly_power_point *last, *above;
    double longest_s, best = INFINITY, best_error = 0.0, apart;

    if (count < 2 || !points[count - 1].binds || !points[count - 2].binds)
        return false;
    last = &points[count - 1].point;
    above = &points[count - 2].point;
    longest_s = points[0].point.time_s * objective->max_slowdown;
    if (last->time_s > above->time_s && is_worse(last->time_s / longest_s, above->time_s / longest_s))
        return true;
    for (size_t i = 0; i < count; i++) {
        double here = score(&points[i].point, objective, max_power_w);

        if (points[i].point.time_s <= longest_s && here < best) {
            best = here;
            best_error = points[i].error;
        }
    }
    apart = score(last, objective, max_power_w) / best;
    return score(last, objective, max_power_w) > score(above, objective, max_power_w) &&
           is_worse(apart, score(above, objective, max_power_w) / best) &&
           apart > 1.0 + hypot(points[count - 1].error, best_error);
}

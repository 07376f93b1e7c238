/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner_choice.h"

#include <math.h>

#include <flyball/power_selector.h>

#include "policy/early_stop.h"

static const double two_standard_errors = 2.0;

static struct fly_power_point plain(const struct fly_tuner_point *point)
{
    return (struct fly_power_point){point->limit_w, point->power_w, point->time_s};
}

bool tuner_may_finish(const struct fly_tuner *tuner)
{
    struct early_stop_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = 0;

    if (tuner->points[0].mark != FLY_TUNER_VALID)
        return false;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark == FLY_TUNER_VALID)
            points[count++] = (struct early_stop_point){plain(point), point->bound == FLY_TUNER_BOUND};
    }
    return early_stop(points, count, &tuner->options.objective, tuner->options.max_power_w);
}

/* How far the ratio of two measured times may be off, as a fraction. */
static double ratio_error(double one, double other)
{
    return two_standard_errors * sqrt(one * one + other * other);
}

bool tuner_choose(const struct fly_tuner *tuner, size_t *out_chosen)
{
    const struct fly_tuner_point *highest = &tuner->points[0];
    struct fly_objective objective = tuner->options.objective;
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t places[FLY_POWER_SEARCH_LIMITS_MAX], count = 0, best;
    double factor = objective.max_slowdown;

    if (isfinite(factor) && highest->mark != FLY_TUNER_VALID)
        return false;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];
        double slack = 1.0 + ratio_error(point->time_error, highest->time_error);

        if (point->mark != FLY_TUNER_VALID ||
            (i > 0 && isfinite(factor) && point->time_s * slack > factor * highest->time_s))
            continue;
        places[count] = i;
        points[count++] = plain(point);
    }
    objective.max_slowdown = INFINITY; /* it has been seen to, with what is uncertain */
    if (fly_power_select(points, count, &objective, tuner->options.max_power_w, &best, NULL) < 0)
        return false;
    *out_chosen = places[best];
    return true;
}

bool tuner_keeps_promise(const struct fly_tuner *tuner, double time_s, double time_error)
{
    const struct fly_tuner_point *highest = &tuner->points[0];
    double factor = tuner->options.objective.max_slowdown;
    double slack = 1.0 + ratio_error(time_error, highest->time_error);

    return highest->mark != FLY_TUNER_VALID || !isfinite(factor) ||
           time_s <= factor * highest->time_s * slack;
}

size_t tuner_next_higher(const struct fly_tuner *tuner, size_t at)
{
    while (at > 0 && tuner->points[--at].mark != FLY_TUNER_VALID)
        ;
    return at;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner_choice.h"

#include <math.h>

#include <flyball/power_selector.h>

#include "policy/early_stop.h"
#include "policy/power_score.h"

static const double two_standard_errors = 2.0;

static struct fly_power_point plain(const struct fly_tuner_point *point)
{
    return (struct fly_power_point){point->limit_w, point->power_w, point->time_s};
}

/* How far the objective's score may be off, as a fraction; NAN when not known. */
static double score_error(const struct fly_tuner *tuner, const struct fly_tuner_point *point)
{
    double time_error = two_standard_errors * point->time_error;

    switch (tuner->options.objective.kind) {
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_COST:
        return hypot(time_error, point->energy_error);
    case FLY_OBJECTIVE_TIME:
        return time_error;
    case FLY_OBJECTIVE_LOWEST_LIMIT:
        break;
    }
    return 0.0;
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
            points[count++] = (struct early_stop_point){plain(point), point->bound == FLY_TUNER_BOUND,
                                                        score_error(tuner, point)};
    }
    return early_stop(points, count, &tuner->options.objective, tuner->options.max_power_w);
}

/* How far the ratio of two measured times may be off, as a fraction. */
static double ratio_error(double one, double other)
{
    return two_standard_errors * sqrt(one * one + other * other);
}

static bool is_within_bound(const struct fly_tuner *tuner, size_t place)
{
    const struct fly_tuner_point *highest = &tuner->points[0], *point = &tuner->points[place];
    double factor = tuner->options.objective.max_slowdown;
    double slack = 1.0 + ratio_error(point->time_error, highest->time_error);

    return place == 0 || !isfinite(factor) || point->time_s * slack <= factor * highest->time_s;
}

uint32_t tuner_ties(const struct fly_tuner *tuner, size_t chosen)
{
    const struct fly_objective *objective = &tuner->options.objective;
    const struct fly_tuner_point *best = &tuner->points[chosen];
    struct fly_power_point best_point = plain(best);
    double least = power_score(&best_point, objective, tuner->options.max_power_w);
    uint32_t ties = 0;

    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *other = &tuner->points[i];
        struct fly_power_point point = plain(other);
        double apart = power_score(&point, objective, tuner->options.max_power_w) / least - 1.0;

        ties += i != chosen && other->mark == FLY_TUNER_VALID && is_within_bound(tuner, i) &&
                !(apart > hypot(score_error(tuner, best), score_error(tuner, other)));
    }
    return ties;
}

bool tuner_choose(const struct fly_tuner *tuner, size_t *out_chosen)
{
    struct fly_objective objective = tuner->options.objective;
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t places[FLY_POWER_SEARCH_LIMITS_MAX], count = 0, best;

    if (isfinite(objective.max_slowdown) && tuner->points[0].mark != FLY_TUNER_VALID)
        return false;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        if (tuner->points[i].mark != FLY_TUNER_VALID || !is_within_bound(tuner, i))
            continue;
        places[count] = i;
        points[count++] = plain(&tuner->points[i]);
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

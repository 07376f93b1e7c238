/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit wins, how certain that is, and whether the bound is kept. Pure. */
#include "train/tuner/tuner_choice.h"

#include <math.h>

#include "policy/power_score.h"
#include "policy/power_search_done.h"

static const double two_standard_errors = 2.0;

static struct fly_power_point plain(const struct fly_tuner_point *point)
{
    return (struct fly_power_point){point->limit_w, point->power_w, point->time_s};
}

/* In how many windows the limit was measured; a point from a file counts as one. */
static double windows_of(const struct fly_tuner *tuner, size_t place)
{
    return fmax(tuner->visits[place].count, 1.0);
}

double tuner_point_score(const struct fly_tuner *tuner, size_t place)
{
    struct fly_power_point point = plain(&tuner->points[place]);

    return power_score(&point, &tuner->options.objective, tuner->options.max_power_w);
}

double tuner_point_deviation(const struct fly_tuner *tuner, size_t place)
{
    const struct fly_tuner_point *point = &tuner->points[place];
    const struct tuner_noise *noise = &tuner->noise;
    double time_error = hypot(point->time_error, noise->time / sqrt(windows_of(tuner, place)));
    double power_error =
        hypot(point->energy_error / tuner_half_width, noise->power / sqrt(windows_of(tuner, place)));

    switch (tuner->options.objective.kind) {
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_COST:
    case FLY_OBJECTIVE_CARBON:
    case FLY_OBJECTIVE_MONEY:
        return hypot(time_error, power_error);
    case FLY_OBJECTIVE_TIME:
        return time_error;
    case FLY_OBJECTIVE_LOWEST_LIMIT:
        break;
    }
    return 0.0;
}

bool tuner_may_finish(const struct fly_tuner *tuner)
{
    struct power_search_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = 0;

    if (tuner->every_limit || tuner->points[0].mark != FLY_TUNER_VALID)
        return false;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark == FLY_TUNER_VALID)
            points[count++] = (struct power_search_point){plain(point), point->bound == FLY_TUNER_BOUND,
                                                          tuner_half_width * tuner_point_deviation(tuner, i)};
    }
    return power_search_done(points, count, &tuner->options.objective, tuner->options.max_power_w);
}

/*
 * How far the ratio of a time to that of the highest limit may be off, as a fraction. Two things contribute:
 * the spread of steps, and the difference between windows beyond that, which a few windows show only roughly.
 */
static double ratio_error(const struct fly_tuner *tuner, double time_error, double windows)
{
    double steps = hypot(time_error, tuner->points[0].time_error);
    double whole = tuner->noise.time * sqrt(1.0 / windows + 1.0 / windows_of(tuner, 0));

    return hypot(two_standard_errors * steps, tuner_noise_factor(&tuner->noise) * whole);
}

/* Whether the limit keeps the bound with its error added `times` times. */
static bool is_within_bound(const struct fly_tuner *tuner, size_t place, double times)
{
    const struct fly_tuner_point *highest = &tuner->points[0], *point = &tuner->points[place];
    double factor = tuner->options.objective.max_slowdown;
    double error = ratio_error(tuner, point->time_error, windows_of(tuner, place));

    return place == 0 || !isfinite(factor) ||
           point->time_s * (1.0 + times * error) <= factor * highest->time_s;
}

bool tuner_may_keep_bound(const struct fly_tuner *tuner, size_t place)
{
    return is_within_bound(tuner, place, -1.0);
}

bool tuner_keeps_bound(const struct fly_tuner *tuner, size_t place)
{
    return is_within_bound(tuner, place, 1.0);
}

uint32_t tuner_ties(const struct fly_tuner *tuner, size_t chosen)
{
    double least = tuner_point_score(tuner, chosen), own = tuner_point_deviation(tuner, chosen);
    uint32_t ties = 0;

    for (size_t i = 0; i < tuner->limit_count; i++) {
        if (i == chosen || tuner->points[i].mark != FLY_TUNER_VALID || !tuner_keeps_bound(tuner, i))
            continue;
        ties += !(tuner_point_score(tuner, i) / least - 1.0 >
                  tuner_half_width * hypot(own, tuner_point_deviation(tuner, i)));
    }
    return ties;
}

bool tuner_choose(const struct fly_tuner *tuner, size_t count, size_t *out_chosen)
{
    bool found = false;

    if (isfinite(tuner->options.objective.max_slowdown) && tuner->points[0].mark != FLY_TUNER_VALID)
        return false;
    /* Of equal limits the highest wins. */
    for (size_t i = 0; i < count; i++) {
        if (tuner->points[i].mark != FLY_TUNER_VALID || !tuner_keeps_bound(tuner, i) ||
            (found && tuner_point_score(tuner, i) >= tuner_point_score(tuner, *out_chosen)))
            continue;
        *out_chosen = i;
        found = true;
    }
    return found;
}

bool tuner_keeps_promise(const struct fly_tuner *tuner, double time_s, double time_error)
{
    const struct fly_tuner_point *highest = &tuner->points[0];
    double factor = tuner->options.objective.max_slowdown;
    double slack = 1.0 + ratio_error(tuner, time_error, 1.0);

    return highest->mark != FLY_TUNER_VALID || !isfinite(factor) ||
           time_s <= factor * highest->time_s * slack;
}

size_t tuner_next_higher(const struct fly_tuner *tuner, size_t at)
{
    while (at > 0 && tuner->points[--at].mark != FLY_TUNER_VALID)
        ;
    return at;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit wins, how certain that is, and whether the bound is kept. Pure. */
#include "train/tuner/tuner_choice.h"

#include <math.h>

#include "policy/power_search_done.h"

/* A limit that is better by less than this share of the tolerance is not looked for; nor by less than this.
 */
static const double indifference_share = 0.25, indifference_most = 0.02;

static struct fly_power_point plain(const struct fly_tuner_point *point)
{
    return (struct fly_power_point){point->limit_w, point->power_w, point->time_s};
}

void tuner_take_arms(const struct fly_tuner *tuner, struct tuner_arms *out_arms)
{
    const struct tuner_noise *noise = &tuner->noise;

    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];
        const struct tuner_visits *visits = &tuner->visits[i];
        bool valid = point->mark == FLY_TUNER_VALID;

        out_arms->room[i] = (struct limit_arm){
            .limit = point->limit_w,
            .time_s = valid ? point->time_s : NAN,
            .power_w = valid ? point->power_w : NAN,
            .time_error = point->time_error,
            /* The meter says how certain the window's energy is; the steps' powers scatter as their times do.
             */
            .power_error = hypot(point->energy_error / limit_half_width, point->time_error),
            .steps = visits->steps,
            .visits = visits->count,
            .felt = tuner->felt[i],
            .scatter = tuner->scatter[i],
            .left_out = !valid && point->mark != FLY_TUNER_NOT_MEASURED,
        };
    }
    out_arms->arms = (struct limit_arms){
        .arms = out_arms->room,
        .count = tuner->limit_count,
        .open = tuner->open_count,
        .objective = tuner->options.objective,
        .max_power_w = tuner->options.max_power_w,
        .visit_time_noise = noise->time,
        .visit_power_noise = noise->power,
        .visit_factor = tuner_noise_factor(noise),
        .indifference = fmin(indifference_share * tuner->options.energy_tolerance, indifference_most),
    };
}

bool tuner_may_finish(const struct fly_tuner *tuner)
{
    struct power_search_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct tuner_arms arms;
    size_t count = 0;

    if (tuner->every_limit || tuner->points[0].mark != FLY_TUNER_VALID)
        return false;
    tuner_take_arms(tuner, &arms);
    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark == FLY_TUNER_VALID)
            points[count++] =
                (struct power_search_point){plain(point), point->bound == FLY_TUNER_BOUND,
                                            limit_half_width * limit_arms_deviation(&arms.arms, i)};
    }
    return power_search_done(points, count, &tuner->options.objective, tuner->options.max_power_w);
}

bool tuner_keeps_bound(const struct fly_tuner *tuner, size_t place)
{
    struct tuner_arms arms;

    tuner_take_arms(tuner, &arms);
    return limit_arms_keeps_bound(&arms.arms, place);
}

uint32_t tuner_ties(const struct fly_tuner *tuner, size_t chosen)
{
    struct tuner_arms arms;
    double least, own;
    uint32_t ties = 0;

    tuner_take_arms(tuner, &arms);
    least = limit_arms_score(&arms.arms, chosen);
    own = limit_arms_deviation(&arms.arms, chosen);
    for (size_t i = 0; i < tuner->limit_count; i++) {
        if (i == chosen || !limit_arms_known(&arms.arms, i) || !limit_arms_keeps_bound(&arms.arms, i))
            continue;
        ties += !(limit_arms_score(&arms.arms, i) / least - 1.0 >
                  limit_half_width * hypot(own, limit_arms_deviation(&arms.arms, i)));
    }
    return ties;
}

bool tuner_choose(const struct fly_tuner *tuner, size_t *out_chosen)
{
    struct tuner_arms arms;

    tuner_take_arms(tuner, &arms);
    return limit_arms_choose(&arms.arms, out_chosen);
}

bool tuner_keeps_promise(const struct fly_tuner *tuner, double time_s, double time_error)
{
    const struct fly_tuner_point *highest = &tuner->points[0];
    double factor = tuner->options.objective.max_slowdown;
    struct tuner_arms arms;
    double slack;

    tuner_take_arms(tuner, &arms);
    slack = 1.0 + limit_arms_ratio_error(&arms.arms, time_error, 0.0, 1);
    return highest->mark != FLY_TUNER_VALID || !isfinite(factor) ||
           time_s <= factor * highest->time_s * slack;
}

size_t tuner_next_higher(const struct fly_tuner *tuner, size_t at)
{
    while (at > 0 && tuner->points[--at].mark != FLY_TUNER_VALID)
        ;
    return at;
}

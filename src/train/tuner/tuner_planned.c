/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which limits a profile needs when those of other batch sizes are known (policy/limit_plan.h). Decided from
 * figures that the ranks have joined, so all decide alike.
 */
#include <string.h>

#include "train/tuner/tuner_choice.h"

void tuner_plan(struct fly_tuner *tuner, const struct limit_curve *curves, size_t curve_count)
{
    struct tuner_plan *plan = &tuner->plan;

    plan->point_count = plan->curve_count = 0;
    for (size_t i = 0; i < curve_count && plan->curve_count < LIMIT_CURVES_MAX; i++) {
        size_t count = curves[i].count;
        struct fly_power_point *points = &plan->points[plan->point_count];

        if (count < LIMIT_CURVE_LEAST || count > TUNER_PLAN_POINTS_MAX - plan->point_count)
            continue;
        memcpy(points, curves[i].points, count * sizeof points[0]);
        plan->point_count += count;
        plan->curves[plan->curve_count++] = (struct limit_curve){points, count, curves[i].octaves};
    }
    plan->left = 2 * (unsigned)tuner->limit_count; /* one that cannot be measured is not tried for ever */
}

bool tuner_is_planned(const struct fly_tuner *tuner)
{
    return !tuner->races && !tuner->every_limit && tuner->plan.curve_count > 0;
}

bool tuner_plan_next(const struct fly_tuner *tuner, size_t *out_place)
{
    struct tuner_arms arms;

    if (tuner->plan.left == 0)
        return false;
    tuner_take_arms(tuner, &arms);
    return limit_plan_next(&arms.arms, tuner->plan.curves, tuner->plan.curve_count, out_place);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/tuner_pace.h"

#include <math.h>

static const double differs_by = 0.05;
static const double share_that_explains = 0.1, share_worth_a_word = 0.3;
static const double same_time = 1.01, less_power = 0.85;

enum fly_tuner_pace pace_judge(const struct pace_facts *facts)
{
    double difference = fabs(facts->checked_s / facts->profile_s - 1.0);
    bool differs = difference > differs_by + facts->error;
    double share = differs ? share_that_explains : share_worth_a_word;

    if (facts->pause_share >= share && !(facts->idle_share > facts->pause_share))
        return FLY_TUNER_PACE_PAUSES;
    if (facts->idle_share >= share)
        return FLY_TUNER_PACE_WAITS;
    if (!differs)
        return difference > differs_by ? FLY_TUNER_PACE_SCATTER : FLY_TUNER_PACE_GPU;
    if (facts->lowest_per_highest_s <= same_time && facts->lowest_per_highest_w <= less_power)
        return FLY_TUNER_PACE_FLAT;
    return FLY_TUNER_PACE_UNSTEADY;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of the chosen limit: measured now and then, held against what it promised, and given up for a
 * higher one.
 */
#include <math.h>

#include "train/tuner/tuner_choice.h"
#include "train/tuner/tuner_private.h"

/* A step time that far from the profile's is another workload. */
static const double drift_fraction = 0.05;

void tuner_begin_check(struct fly_tuner *tuner)
{
    tuner->looking = false;
    tuner->check = (struct tuner_visit){0};
    tuner->state = FLY_TUNER_CHECKING;
    tuner_search_one(tuner, tuner->chosen, tuner->options.profile_steps);
}

void tuner_check_anew(struct fly_tuner *tuner)
{
    tuner_window_drop(tuner);
    tuner_begin_check(tuner);
}

bool tuner_has_drifted(const struct fly_tuner *tuner, double time_s)
{
    const struct fly_tuner_point *point = &tuner->points[tuner->chosen];

    return point->mark == FLY_TUNER_VALID && fabs(time_s / point->time_s - 1.0) > drift_fraction &&
           tuner->count.begun >= tuner->remeasure_from;
}

void tuner_back_off(struct fly_tuner *tuner)
{
    size_t next = tuner_next_higher(tuner, tuner->chosen);

    tuner->broken_checks = 0;
    tuner->report.backoffs++;
    if (tuner->noise.time > 0.0)
        (void)tuner_choose(tuner, tuner->chosen, &next);
    /* Rather none at all than a fourth that does not keep it either. */
    tuner->chosen = tuner->report.backoffs > FLY_TUNER_BACKOFFS_MAX ? 0 : next;
    tuner_begin_check(tuner);
}

/*
 * Whether the chosen limit keeps its promise. The first check is one more window of
 * it; where windows differ by more than their steps explain, all that there are of it count, and
 * the bound is to be kept with what is uncertain to spare. A check later on only sees
 * whether it is clearly broken, which once may be chance.
 */
bool tuner_is_promise_kept(struct fly_tuner *tuner, double time_s)
{
    if (tuner->confirming && tuner->check.steps > 0.0) {
        tuner_add_visit(tuner, tuner->chosen, &tuner->check);
        if (tuner->noise.time > 0.0) {
            tuner->broken_checks++;
            return tuner_keeps_bound(tuner, tuner->chosen);
        }
    }
    return tuner_keeps_promise(tuner, time_s, tuner->check.time_error);
}

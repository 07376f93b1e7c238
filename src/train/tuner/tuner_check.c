/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the chosen limit: measures it now and then, compares it with its promise, and gives it up for a
 * higher one when it breaks that.
 */
#include <math.h>

#include "train/tuner/tuner_choice.h"
#include "train/tuner/tuner_private.h"

/* A step time this far from the profile's, beyond what both may be off, means another workload. */
static const double drift_fraction = 0.05;

void tuner_begin_check(struct fly_tuner *tuner)
{
    tuner->looking = false;
    tuner->check = (struct tuner_visit){0};
    tuner->state = FLY_TUNER_CHECKING;
    tuner_search_one(tuner, tuner->chosen, tuner_race_check_steps(tuner));
}

void tuner_check_anew(struct fly_tuner *tuner)
{
    tuner_window_drop(tuner);
    tuner_begin_check(tuner);
}

bool tuner_has_drifted(const struct fly_tuner *tuner, double time_s)
{
    const struct fly_tuner_point *point = &tuner->points[tuner->chosen];
    double error =
        limit_half_width * hypot(hypot(point->time_error, tuner->check.time_error), tuner->noise.time);

    return point->mark == FLY_TUNER_VALID && fabs(time_s / point->time_s - 1.0) > drift_fraction + error &&
           tuner->count.begun >= tuner->remeasure_from;
}

void tuner_back_off(struct fly_tuner *tuner)
{
    size_t next = tuner_next_higher(tuner, tuner->chosen);

    /* The points say that it keeps the bound: it must not be chosen before the next search. */
    if (tuner_keeps_bound(tuner, tuner->chosen))
        tuner->open_count = tuner->chosen;
    tuner->broken_checks = 0;
    tuner->report.backoffs++;
    if (tuner->options.knob == FLY_TUNER_PROFILE)
        next = 0; /* none is next to another */
    else if (tuner->noise.time > 0.0 || tuner->races)
        (void)tuner_choose(tuner, &next);
    /* Use no limit at all rather than a fourth that breaks the promise too. */
    tuner->chosen = tuner->report.backoffs > FLY_TUNER_BACKOFFS_MAX ? 0 : next;
    tuner_begin_check(tuner);
}

/*
 * Whether the chosen limit keeps its promise. The first check is one more window of that limit: where windows
 * differ by more than their steps explain, all windows of the limit count, and the bound must be kept with
 * the uncertainty to spare. A later check only notices whether the promise is clearly broken; once may be
 * chance.
 */
bool tuner_is_promise_kept(struct fly_tuner *tuner, double time_s)
{
    if (tuner->confirming && tuner->check.steps > 0.0) {
        tuner_race_add_check(tuner);
        if (tuner->noise.time > 0.0 || (tuner->races && tuner->visits[tuner->chosen].count > 1)) {
            tuner->broken_checks++;
            return tuner_keeps_bound(tuner, tuner->chosen);
        }
    }
    return tuner_keeps_promise(tuner, time_s, tuner->check.time_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Begins the pure search that a tuner carries out: over all limits, or over one alone. */
#include <math.h>

#include "train/tuner/tuner_private.h"

int tuner_search_all(struct fly_tuner *tuner, struct fly_error *out_error)
{
    double limits_w[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_power_point saved[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_power_search_options options = {.size = sizeof options,
                                               .limits_w = limits_w,
                                               .limit_count = tuner->limit_count,
                                               .wait_steps = tuner->options.wait_steps,
                                               .warmup_steps = tuner->options.warmup_steps,
                                               .profile_steps = tuner->options.profile_steps,
                                               .objective = tuner->options.objective,
                                               .max_power_w = tuner->options.max_power_w,
                                               .profile = saved};

    for (size_t i = 0; i < tuner->limit_count; i++)
        limits_w[i] = tuner->points[i].limit_w;
    options.profile_count = tuner_measured_points(tuner, saved);
    tuner->window_steps = tuner->options.profile_steps;
    tuner->looking = tuner->racing = false;
    tuner->races &= tuner->options.knob != FLY_TUNER_PROFILE; /* these have no order */
    tuner->open_count = tuner->limit_count;
    tuner->level = 1.0;
    return fly_power_search_new(&options, &tuner->search, out_error);
}

/* Begins a search over one limit alone, with warm-up; it measures across ends of epochs. */
void tuner_search_one(struct fly_tuner *tuner, size_t place, uint32_t steps)
{
    const struct fly_power_search_options options = {
        .size = sizeof options,
        .limits_w = &tuner->points[place].limit_w,
        .limit_count = 1,
        .warmup_steps = tuner_race_warmup(tuner, place),
        .profile_steps = steps,
        .objective = {.kind = FLY_OBJECTIVE_TIME, .max_slowdown = INFINITY},
    };

    fly_power_search_free(tuner->search);
    tuner->search = NULL;
    tuner->window_steps = steps;
    tuner_rest(tuner, 0);
    tuner_window_forget(tuner);
    tuner->restarts = 0;
    tuner->at = place;
    if (fly_power_search_new(&options, &tuner->search, NULL) < 0)
        tuner_fault(tuner, FLY_TUNER_NO_MEMORY, "no memory to measure a limit again");
    (void)tuner_all_go_on(tuner);
}

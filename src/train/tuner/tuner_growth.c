/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides for how long a limit is measured. A counter that moves ten times a second says little about 40
 * steps of 15 ms: its two edges miss 14 % of them. The meter reports this uncertainty, and the window goes on
 * until the interval is narrow enough. Pure: ranks that see the same window decide alike.
 */
#include <math.h>

#include "train/tuner/tuner_private.h"

/* A window without an energy may have been too short for one; a window longer than this was not. */
static const double telling_s = 2.0;
/* The error of the edges falls as 1 / time. A little more makes the next look the last. */
static const double surplus = 1.02;

double tuner_energy_error(const struct fly_tuner *tuner, const struct tuner_window *window)
{
    return sqrt(tuner->parts.half_j2 + window->half_j * window->half_j) /
           (tuner->parts.energy_j + window->energy_j);
}

/*
 * Whether the choice may depend on the energy of the limit on trial; for the time alone 40 steps are enough.
 */
static bool needs_energy(const struct fly_tuner *tuner, double time_s)
{
    const struct fly_tuner_point *highest = &tuner->points[0];
    const struct fly_objective *objective = &tuner->options.objective;

    if (tuner->state != FLY_TUNER_SEARCHING || tuner->looking || objective->kind == FLY_OBJECTIVE_TIME ||
        objective->kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return false;
    /* The plan uses limits beyond the bound too, for some of the time. */
    return tuner->carbon.governor != NULL || highest->mark != FLY_TUNER_VALID ||
           time_s <= objective->max_slowdown * highest->time_s;
}

/* By which factor the measurement must become longer; 1: long enough. */
static double growth(const struct fly_tuner *tuner, const struct tuner_window *window, double time_s)
{
    double error = tuner_energy_error(tuner, window);
    double tolerance = tuner->options.energy_tolerance;

    if (isnan(error))
        return fmax(telling_s / time_s, 1.0);
    if (error <= tolerance || !needs_energy(tuner, time_s / (double)tuner->times.count))
        return 1.0;
    return fmin(surplus * error / tolerance, tuner->options.window_max_s / time_s);
}

uint32_t tuner_steps_missing(const struct fly_tuner *tuner, const struct tuner_window *window)
{
    double steps = (double)tuner->times.count, time_s = tuner->parts.time_s + window->time_s, wanted;

    if (tuner->times.count < (uint64_t)tuner->window_steps + tuner->parts.extra_steps || !(time_s > 0.0))
        return 0; /* at an epoch's end more steps follow anyway */
    wanted = fmin(floor(steps * growth(tuner, window, time_s)), (double)(UINT32_MAX / 2));
    return wanted > steps ? (uint32_t)(wanted - steps) : 0;
}

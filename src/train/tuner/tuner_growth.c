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

/* Which part of a window's steps shows whether it has settled; how many, at least. */
enum { EARLY_PART = 3, EARLY_STEPS_LEAST = 3 };
/* A difference that counts: as a fraction, and in standard errors. */
static const double unsettled_fraction = 0.01, unsettled_errors = 4.0;
/* A step that takes so many mean steps contains a pause. */
static const double pause_means = 5.0;
enum { RESTARTS_MAX = 3 };

/* Mean and variance of the record's places from one to the other; pauses do not count. */
static struct place_sums {
    double count, mean_s, squares_s2;
} sum_places(const struct step_record *record, size_t from, size_t to, double longest_s)
{
    struct place_sums sums = {0};

    for (size_t i = from; i < to; i++) {
        double off_s = record->places_s[i] - sums.mean_s;

        if (record->places_s[i] > longest_s)
            continue;
        sums.count++;
        sums.mean_s += off_s / sums.count;
        sums.squares_s2 += off_s * (record->places_s[i] - sums.mean_s);
    }
    return sums;
}

/* Whether the mean of the first steps is off that of the others, beyond chance. */
static bool begins_apart(const struct step_record *record, double mean_s)
{
    double longest_s = pause_means * mean_s;
    size_t part = record->count / EARLY_PART;
    struct place_sums first = sum_places(record, 0, part, longest_s);
    struct place_sums others = sum_places(record, part, record->count, longest_s);
    double count = first.count + others.count, error_s;

    if (first.count < EARLY_STEPS_LEAST || others.count < EARLY_STEPS_LEAST)
        return false;
    error_s = sqrt((first.squares_s2 + others.squares_s2) / (count - 2.0) *
                   (1.0 / first.count + 1.0 / others.count));
    return fabs(first.mean_s - others.mean_s) > fmax(unsettled_fraction * mean_s, unsettled_errors * error_s);
}

bool tuner_is_unsettled(struct fly_tuner *tuner)
{
    double nothing = 0.0, differs;

    if (!tuner->races || tuner->state != FLY_TUNER_SEARCHING || tuner->restarts >= RESTARTS_MAX ||
        tuner->times.count != tuner->window_steps)
        return false;
    differs = begins_apart(&tuner->record, tuner->estimated.mean_s);
    if (!tuner_exchange(tuner, &nothing, 0, &differs, 1) || !(differs > 0.0))
        return false;
    tuner->restarts++;
    return true;
}

double tuner_energy_error(const struct fly_tuner *tuner, const struct tuner_window *window)
{
    return sqrt(tuner->parts.half_j2 + window->half_j * window->half_j) /
           (tuner->parts.energy_j + window->energy_j);
}

struct tuner_visit tuner_visit_so_far(const struct fly_tuner *tuner, const struct tuner_window *window)
{
    double energy_j = tuner->parts.energy_j + window->energy_j;

    return (struct tuner_visit){.steps = (double)tuner->times.count,
                                .time_s = tuner->parts.time_s + window->time_s,
                                .energy_j = energy_j,
                                .half_j = tuner_energy_error(tuner, window) * energy_j,
                                .time_error = window->time_error};
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

/* Twice as many steps each time, for as long as a window may be too short for a figure. */
static uint32_t race_steps_missing(struct fly_tuner *tuner, const struct tuner_window *window)
{
    struct tuner_visit visit = tuner_visit_so_far(tuner, window);

    if (!isnan(visit.half_j))
        return tuner_race_more(tuner, &visit);
    return visit.time_s < telling_s ? (uint32_t)visit.steps : 0;
}

uint32_t tuner_steps_missing(struct fly_tuner *tuner, const struct tuner_window *window)
{
    double steps = (double)tuner->times.count, time_s = tuner->parts.time_s + window->time_s, wanted;

    if (tuner->times.count < (uint64_t)tuner->window_steps + tuner->parts.extra_steps || !(time_s > 0.0))
        return 0; /* at an epoch's end more steps follow anyway */
    if (tuner->races && tuner->state == FLY_TUNER_SEARCHING)
        return race_steps_missing(tuner, window);
    wanted = fmin(floor(steps * growth(tuner, window, time_s)), (double)(UINT32_MAX / 2));
    return wanted > steps ? (uint32_t)(wanted - steps) : 0;
}

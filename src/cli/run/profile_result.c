/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/profile_result.h"

#include <math.h>
#include <stdio.h>

#include <flyball/power_selector.h>

#include "model/job_spec.h"
#include "train/tuner/saved_profile.h"

static const double percent = 100, normal_95 = 1.96;

static const struct {
    enum fly_objective_kind kind;
    const char *name;
    bool bound;
} selectors[PROFILE_SELECTOR_COUNT] = {
    [PROFILE_LEAST_ENERGY] = {FLY_OBJECTIVE_ENERGY, "least energy", false},
    [PROFILE_LEAST_TIME] = {FLY_OBJECTIVE_TIME, "least time", false},
    [PROFILE_LEAST_COST] = {FLY_OBJECTIVE_COST, "lowest score", false},
    [PROFILE_ENERGY_WITHIN] = {FLY_OBJECTIVE_ENERGY, "least energy", true},
    [PROFILE_COST_WITHIN] = {FLY_OBJECTIVE_COST, "lowest score", true},
    [PROFILE_LOWEST_LIMIT_WITHIN] = {FLY_OBJECTIVE_LOWEST_LIMIT, "lowest limit", true},
};

const char *profile_setting(const struct fly_tuner_point *point, char text[PROFILE_SETTING_MAX])
{
    if (isnan(point->ceiling_mhz))
        snprintf(text, PROFILE_SETTING_MAX, "%g W", point->limit_w);
    else
        snprintf(text, PROFILE_SETTING_MAX, "%g MHz", point->ceiling_mhz);
    return text;
}

const char *profile_noun(const struct profile_result *result)
{
    if (result->of_power && result->of_clock)
        return "setting";
    return result->of_clock ? "ceiling" : "limit";
}

/* The lowest limit is one of limits where there are any. */
static bool may_choose(const struct profile_result *result, enum profile_selector selector,
                       const struct fly_tuner_point *point)
{
    return point->mark == FLY_TUNER_VALID &&
           (selector != PROFILE_LOWEST_LIMIT_WITHIN || !result->of_power || isnan(point->ceiling_mhz));
}

/* Returns why it is not complete, if a fault ended it and not the last limit. */
static const char *why_not_complete(const struct profile_result *result)
{
    const struct run_tune *tune = result->tune;

    if (tune->off[0] != '\0')
        return tune->off;
    if (tune->reported &&
        (tune->report.state == FLY_TUNER_STOPPED || tune->report.reason == FLY_TUNER_NO_WORK))
        return tune->report.text;
    if (result->tried < tune->point_count || tune->point_count == 0)
        return "the program ended before every limit was measured";
    return NULL;
}

/* Energy and time of a step, weighed by the objective, with the half width of its interval. */
struct figure {
    double value, half_width;
};

static struct figure figure_of(const struct profile_choice *choice, double max_power_w,
                               const struct fly_tuner_point *point)
{
    double eta = objective_eta(&choice->objective);
    double energy_j = eta * point->power_w * point->time_s, time_j = (1 - eta) * max_power_w * point->time_s;

    return (struct figure){energy_j + time_j, hypot(energy_j * (eta > 0 ? point->energy_error : 0),
                                                    time_j * (eta < 1 ? normal_95 * point->time_error : 0))};
}

/*
 * Returns whether a point is better than the highest limit's by more than both are uncertain.
 * False if unknown.
 */
static bool told_from_highest(const struct profile_result *result, const struct profile_choice *choice,
                              const struct fly_tuner_point *point)
{
    struct figure found = figure_of(choice, result->max_power_w, point), highest;

    if (choice->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT || result->highest == NULL ||
        point == result->highest)
        return true;
    highest = figure_of(choice, result->max_power_w, result->highest);
    return highest.value - found.value > hypot(highest.half_width, found.half_width);
}

static void choose(struct profile_result *result, enum profile_selector selector)
{
    const struct fly_objective *wish = &result->tune->objective;
    struct profile_choice *choice = &result->choices[selector];
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    const struct fly_tuner_point *places[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = 0, chosen = 0;
    int length;

    choice->objective = (struct fly_objective){selectors[selector].kind, wish->eta,
                                               selectors[selector].bound ? wish->max_slowdown : INFINITY};
    length =
        snprintf(choice->name, sizeof choice->name, "%s",
                 selector == PROFILE_LOWEST_LIMIT_WITHIN && !result->of_power ? "lowest ceiling"
                                                                              : selectors[selector].name);
    if (choice->objective.kind == FLY_OBJECTIVE_COST)
        length +=
            snprintf(choice->name + length, sizeof choice->name - (size_t)length, " (eta %g)", wish->eta);
    if (selectors[selector].bound)
        snprintf(choice->name + length, sizeof choice->name - (size_t)length, " within %.4g %% more time",
                 (wish->max_slowdown - 1) * percent);
    choice->point = choice->tied = NULL;
    for (size_t i = 0; i < result->tune->point_count; i++) {
        const struct fly_tuner_point *point = &result->tune->points[i];

        if (!may_choose(result, selector, point))
            continue;
        places[count] = point;
        points[count++] = (struct fly_power_point){
            isnan(point->limit_w) ? point->ceiling_mhz : point->limit_w, point->power_w, point->time_s};
    }
    if (selectors[selector].bound && result->highest == NULL)
        return;
    if (fly_power_select(points, count, &choice->objective, result->max_power_w, &chosen, NULL) != 0)
        return;
    if (told_from_highest(result, choice, places[chosen]))
        choice->point = places[chosen];
    else
        choice->tied = places[chosen];
}

void profile_result_of(const struct run_tune *tune, struct profile_result *out_result)
{
    struct profile_result *result = out_result;

    *result = (struct profile_result){.tune = tune};
    for (size_t i = 0; i < tune->point_count; i++) {
        result->valid += tune->points[i].mark == FLY_TUNER_VALID;
        result->tried += tune->points[i].mark != FLY_TUNER_NOT_MEASURED;
        result->of_power |= isnan(tune->points[i].ceiling_mhz);
        result->of_clock |= !isnan(tune->points[i].ceiling_mhz);
    }
    if (tune->point_count > 0 && tune->points[0].mark == FLY_TUNER_VALID)
        result->highest = &tune->points[0];
    result->max_power_w = tune->turner.highest_power_w * (double)tune->gpu_count;
    result->why = why_not_complete(result);
    result->complete = result->why == NULL;
    for (int i = 0; i < PROFILE_SELECTOR_COUNT; i++)
        choose(result, (enum profile_selector)i);
}

/* Copies the points of one knob, with the setting where a file has it; returns how many. */
static size_t points_of(const struct run_tune *tune, bool of_clock, struct fly_tuner_point *points)
{
    size_t count = 0;

    for (size_t i = 0; i < tune->point_count; i++) {
        if (isnan(tune->points[i].ceiling_mhz) == of_clock)
            continue;
        points[count] = tune->points[i];
        points[count++].limit_w = of_clock ? tune->points[i].ceiling_mhz : tune->points[i].limit_w;
    }
    return count;
}

/* Of both knobs, the key is that of the clock. */
static struct profile_key key_of(const struct run_tune *tune, bool of_clock)
{
    struct profile_key key = tune->key;

    if (of_clock)
        return key;
    key.knob = FLY_TUNER_POWER_LIMIT;
    key.under_limit_w = 0;
    return key;
}

static int save_one(const struct profile_result *result, bool of_clock, const char *path,
                    struct fly_error *out_error)
{
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct profile_key key = key_of(result->tune, of_clock);

    return profile_write(path, &key, points, points_of(result->tune, of_clock, points), out_error);
}

int profile_result_save(const struct profile_result *result, const char *path, struct fly_error *out_error)
{
    return save_one(result, !result->of_power, path, out_error);
}

int profile_result_save_in(const struct profile_result *result, const char *directory,
                           char out_path[PROFILE_PATH_MAX], struct fly_error *out_error)
{
    const bool wanted[] = {result->of_power, result->of_clock};
    int code = 0;

    for (int of_clock = 0; of_clock <= 1 && code == 0; of_clock++) {
        struct profile_key key = key_of(result->tune, of_clock);

        if (!wanted[of_clock])
            continue;
        code = profile_path(directory, &key, out_path, out_error);
        if (code == 0)
            code = save_one(result, of_clock, out_path, out_error);
    }
    return code;
}

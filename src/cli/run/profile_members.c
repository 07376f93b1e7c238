/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/profile_members.h"

#include <math.h>

#include "cli/run/profile_change.h"
#include "shapes/shape_told.h"

struct told_choice {
    const char *name;
    double max_slowdown, limit_w, tied_limit_w, ceiling_mhz, tied_ceiling_mhz;
    double time_change_percent, time_change_uncertainty_percent;
    double energy_change_uncertainty_percent, energy_change_percent;
    const char *no_choice; /* why there is none */
};

#define CHOICE(member) SHAPE_AT(told_choice, member), TOLD_NUMBER
#define OF_CHOSEN(member) CHOICE(member), TOLD_ELSE_AT(told_choice, no_choice)
static const struct shape_field choice_rows[] = {
    {SHAPE_AT(told_choice, name), TOLD_ANY_TEXT},
    {CHOICE(max_slowdown), TOLD_ELSE("there is no bound")},
    {OF_CHOSEN(limit_w)},
    {CHOICE(tied_limit_w), TOLD_ELSE("no limit ties with the highest")},
    {CHOICE(ceiling_mhz), .need = SHAPE_SPARING},
    {CHOICE(tied_ceiling_mhz), .need = SHAPE_SPARING},
    {OF_CHOSEN(time_change_percent)},
    {OF_CHOSEN(time_change_uncertainty_percent)},
    {OF_CHOSEN(energy_change_uncertainty_percent)},
    {OF_CHOSEN(energy_change_percent)},
};
static const struct shape choice_shape = {SHAPE_OF(told_choice, choice_rows)};

static struct told_choice told_choice(const struct profile_result *result,
                                      const struct profile_choice *choice)
{
    const struct fly_tuner_point *point = choice->point;

    return (struct told_choice){
        .name = choice->name,
        .max_slowdown = choice->objective.max_slowdown,
        .limit_w = point != NULL ? point->limit_w : NAN,
        .tied_limit_w = choice->tied != NULL ? choice->tied->limit_w : NAN,
        .ceiling_mhz = point != NULL ? point->ceiling_mhz : NAN,
        .tied_ceiling_mhz = choice->tied != NULL ? choice->tied->ceiling_mhz : NAN,
        .time_change_percent = point != NULL ? profile_time_change(result, point) : NAN,
        .time_change_uncertainty_percent = point != NULL ? profile_time_change_error(result, point) : NAN,
        .energy_change_uncertainty_percent = point != NULL ? profile_energy_change_error(result, point) : NAN,
        .energy_change_percent = point != NULL ? profile_energy_change(result, point) : NAN,
        .no_choice = point != NULL        ? "the clock alone was turned"
                     : result->valid == 0 ? "no limit has a valid point"
                     : choice->tied != NULL
                         ? "no limit differs from the highest by more than both are uncertain"
                         : PROFILE_NO_HIGHEST,
    };
}

struct told_choices {
    struct told_choice of[PROFILE_SELECTOR_COUNT];
};

#define CHOICE_BY(title, selector) \
    SHAPE_AT_AS(title, told_choices, of[selector]), SHAPE_IS_STRUCT(&choice_shape)
static const struct shape_field choices_rows[] = {
    {CHOICE_BY("energy", PROFILE_LEAST_ENERGY)},
    {CHOICE_BY("time", PROFILE_LEAST_TIME)},
    {CHOICE_BY("cost", PROFILE_LEAST_COST)},
    {CHOICE_BY("energy_within", PROFILE_ENERGY_WITHIN)},
    {CHOICE_BY("cost_within", PROFILE_COST_WITHIN)},
    {CHOICE_BY("lowest_limit_within", PROFILE_LOWEST_LIMIT_WITHIN)},
};
static const struct shape choices_shape = {SHAPE_OF(told_choices, choices_rows)};

static const struct shape_field info_rows[] = {
    {SHAPE_AT(device_info, index), TOLD_U32},
    {SHAPE_AT(device_info, name), TOLD_ANY_CHARS(device_info, name)},
    {SHAPE_AT(device_info, uuid), TOLD_ANY_CHARS(device_info, uuid)},
    {SHAPE_AT(device_info, driver), TOLD_ANY_CHARS(device_info, driver)},
    {SHAPE_AT(device_info, emulated), TOLD_BOOL},
};
static const struct shape info_shape = {SHAPE_OF(device_info, info_rows)};

struct told_gpu {
    const struct device_info *info;
};

static const struct shape_field gpu_rows[] = {{SHAPE_AT(told_gpu, info), TOLD_MERGED(&info_shape)}};
static const struct shape gpu_shape = {SHAPE_OF(told_gpu, gpu_rows)};

struct told_cost {
    uint64_t steps;
    double time_s, energy_j;
};

static const char not_complete[] = "the profile is not complete";
static const struct shape_field cost_rows[] = {
    {SHAPE_AT(told_cost, steps), TOLD_U64},
    {SHAPE_AT(told_cost, time_s), TOLD_NUMBER, TOLD_ELSE(not_complete)},
    {SHAPE_AT(told_cost, energy_j), TOLD_NUMBER, TOLD_ELSE(not_complete)},
};
static const struct shape cost_shape = {SHAPE_OF(told_cost, cost_rows)};

/* What stands beside the points. */
struct told_profile {
    bool complete;
    const char *not_complete_because, *job; /* NULL: there is none */
    struct told_gpu gpus[DEVICES_MAX];
    size_t gpu_count;
    uint64_t batch_size;
    const char *knob, *knob_note;
    size_t limits, limits_valid;
    double start_limit_w, eta, max_power_w;
    struct told_choices optimum;
    struct told_cost cost;
};

static const struct shape_field profile_rows[] = {
    {SHAPE_AT(told_profile, complete), TOLD_BOOL},
    {SHAPE_AT(told_profile, not_complete_because), TOLD_TEXT},
    {SHAPE_AT(told_profile, gpus), SHAPE_IS_STRUCTS_HERE(&gpu_shape, told_profile, gpus, gpu_count)},
    {SHAPE_AT(told_profile, job), TOLD_ANY_TEXT, .null = SHAPE_OR_NULL},
    {SHAPE_AT(told_profile, batch_size), TOLD_U64, .null = SHAPE_ZERO},
    {SHAPE_AT(told_profile, knob), TOLD_ANY_TEXT},
    {SHAPE_AT(told_profile, knob_note), TOLD_TEXT},
    {SHAPE_AT(told_profile, limits), TOLD_SIZE},
    {SHAPE_AT(told_profile, limits_valid), TOLD_SIZE},
    {SHAPE_AT(told_profile, start_limit_w), TOLD_NUMBER, TOLD_ELSE("no limit was turned")},
    {SHAPE_AT(told_profile, eta), TOLD_NUMBER},
    {SHAPE_AT(told_profile, max_power_w), TOLD_NUMBER},
    {SHAPE_AT(told_profile, optimum), SHAPE_IS_STRUCT(&choices_shape)},
    {SHAPE_AT(told_profile, cost), SHAPE_IS_STRUCT(&cost_shape)},
};
static const struct shape profile_shape = {SHAPE_OF(told_profile, profile_rows)};

void profile_members_add(struct table *table, const struct profile_result *result)
{
    const struct run_tune *tune = result->tune;
    const struct fly_tuner_report *report = &tune->report;
    struct told_profile told = {
        .complete = result->complete,
        .not_complete_because = result->why,
        .gpu_count = tune->gpu_count,
        .job = tune->job_name,
        .batch_size = tune->batch_size,
        .knob = fly_tuner_knob_name(run_tune_knob(tune)),
        .knob_note = report->knob_note,
        .limits = tune->point_count,
        .limits_valid = result->valid,
        .start_limit_w = tune->reported ? report->start_limit_w : NAN,
        .eta = tune->objective.eta,
        .max_power_w = result->max_power_w > 0 ? result->max_power_w : NAN,
        .cost = {report->search_steps, result->complete ? report->search_time_s : NAN,
                 result->complete ? report->search_energy_j : NAN},
    };

    for (size_t i = 0; i < tune->gpu_count; i++)
        told.gpus[i].info = &tune->gpus[i]->info;
    for (int i = 0; i < PROFILE_SELECTOR_COUNT; i++)
        told.optimum.of[i] = told_choice(result, &result->choices[i]);
    table_members(table, &profile_shape, &told);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tuner from its options, alone and with the other ranks, and frees it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disabled.h"
#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "meter/meter.h"
#include "model/objective_check.h"
#include "train/program/step_place.h"
#include "train/program/step_writer.h"
#include "train/tuner/own_knobs.h"
#include "train/tuner/tuner_private.h"

static void fill_defaults(struct fly_tuner_options *options)
{
    static const struct {
        size_t at;
        uint32_t value;
    } defaults[] = {
        {offsetof(struct fly_tuner_options, wait_steps), 1},
        {offsetof(struct fly_tuner_options, warmup_steps), 10},
        {offsetof(struct fly_tuner_options, profile_steps), 40},
        {offsetof(struct fly_tuner_options, check_every_steps), 1000},
        {offsetof(struct fly_tuner_options, remeasure_distance_steps), 10000},
    };

    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        uint32_t *value = (uint32_t *)(void *)((char *)options + defaults[i].at);

        if (*value == 0)
            *value = defaults[i].value;
    }
    if (!(options->energy_tolerance > 0.0))
        options->energy_tolerance = 0.04;
    if (!(options->window_max_s > 0.0))
        options->window_max_s = 10.0;
}

/* Options as callers of the first version know them end here. */
static const size_t first_size = offsetof(struct fly_tuner_options, clock_turner);

static int check_options(const struct fly_tuner_options *options, struct fly_error *out_error)
{
    if (options->size < first_size)
        return error_set(out_error, FLY_EUSAGE, "tuner: options.size is %zu; set it to sizeof options",
                         options->size);
    if (options->meter == NULL)
        return error_set(out_error, FLY_EUSAGE, "tuner: options need a meter");
    if ((unsigned)options->knob > FLY_TUNER_PROFILE)
        return error_set(out_error, FLY_EUSAGE, "tuner: there is no knob %d", (int)options->knob);
    if (options->knob == FLY_TUNER_PROFILE && options->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return error_set(out_error, FLY_EUSAGE,
                         "tuner: profiles have no order, and none is the lowest; give another objective");
    return tuner_carbon_check(options, out_error);
}

/* Joins the ranks at the start. */
static int join_ranks(struct fly_tuner *tuner, struct fly_error *out_error)
{
    double gpus = (double)tuner->key.gpu_count;

    if (!tuner_ranks_agree(tuner, &gpus))
        return error_set(
            out_error, FLY_EUSAGE, "tuner: %s",
            tuner->reason != FLY_TUNER_GOES_ON
                ? tuner->report.text
                : "the ranks' GPUs have not the same limits, or some ranks alone are to follow the "
                  "grid; give all ranks the same");
    tuner->key.gpu_count = (uint64_t)gpus;
    if (!(tuner->options.max_power_w > 0.0))
        tuner->options.max_power_w = tuner->highest_power_w * fmax(gpus, 1.0);
    if (tuner->options.objective.kind == FLY_OBJECTIVE_COST && !(tuner->options.max_power_w > 0.0))
        return error_set(out_error, FLY_EUSAGE,
                         "tuner: the highest power limit of the GPUs is not known; give max_power_w");
    return 0;
}

/* Sets up all that needs no other rank. */
static int set_up_alone(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                        struct fly_error *out_error)
{
    int code = tuner_take_knobs(tuner, options, out_error);

    if (code < 0)
        return code;
    tuner->device_count = fly_meter_device_count(options->meter);
    tuner->energies = calloc(tuner->device_count + 1, sizeof *tuner->energies);
    if (tuner->energies == NULL)
        return error_no_memory(out_error);
    tuner_take_key(tuner, options);
    return 0;
}

static int try_turner(const struct fly_turner *turner, void *data, struct fly_error *out_error)
{
    struct fly_turner_range range;
    double setting;
    int code = turner->range(data, &range, out_error);

    return code < 0 ? code : turner->standing(data, &setting, out_error);
}

/*
 * Opens the knobs of this rank's GPUs when the caller brings none. When that fails, the tuner still works:
 * the caller did nothing wrong.
 */
static void take_knobs(struct fly_tuner *tuner)
{
    struct fly_error error = {.text = ""}, other;
    int code = own_knobs_open(tuner->options.meter, &tuner->knobs, &error);

    tuner->options.turner = tuner->wish == FLY_TUNER_CLOCK     ? &own_clock_turner
                            : tuner->wish == FLY_TUNER_PROFILE ? &own_workload_turner
                                                               : &own_limit_turner;
    tuner->options.clock_turner = &own_clock_turner;
    tuner->options.turner_data = tuner->options.clock_turner_data = tuner->knobs;
    if (code == 0)
        code = try_turner(tuner->options.turner, tuner->knobs, &error);
    /* Where there is no limit to set there may be a clock. */
    if (code == FLY_EUNSUPPORTED && (tuner->wish == FLY_TUNER_BOTH || tuner->wish == FLY_TUNER_AUTO) &&
        tuner->knobs != NULL && try_turner(&own_clock_turner, tuner->knobs, &other) == 0)
        code = 0;
    if (code < 0)
        tuner_fault(tuner, FLY_TUNER_NO_KNOB, "%s", error.text);
    else
        own_knobs_leave_alone(tuner->knobs, tuner_left_alone(tuner));
}

/* Puts `idle` in front of the turners, unless somebody has put another one there. */
static void guard_idling(struct fly_tuner *tuner)
{
    struct fly_tuner_options *options = &tuner->options;
    struct idle_turner *idle = idle_turner_of(options->turner, options->turner_data);

    if (idle != NULL) {
        tuner->idle = idle;
        return;
    }
    idle_turner_init(&tuner->own_idle, &(struct idle_options){
                                           .steps = &tuner->count.begun,
                                           .clock = tuner->clock,
                                           .give_back_s = options->give_back_s,
                                           .open = tuner->knobs != NULL ? own_knobs_take : NULL,
                                           .close = tuner->knobs != NULL ? own_knobs_give_back : NULL,
                                           .data = tuner->knobs,
                                       });
    idle_turner_add(&tuner->own_idle, &options->turner, &options->turner_data);
    if (options->clock_turner != NULL)
        idle_turner_add(&tuner->own_idle, &options->clock_turner, &options->clock_turner_data);
}

static int set_up(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                  struct fly_error *out_error)
{
    int code, joined;

    if (options->turner == NULL)
        take_knobs(tuner);
    if (tuner->reason == FLY_TUNER_NO_KNOB) {
        (void)join_ranks(tuner, NULL);
        return 0;
    }
    guard_idling(tuner);
    code = set_up_alone(tuner, options, out_error);
    /* The other ranks wait for this one, so join them even when this rank cannot go on. */
    if (code < 0)
        tuner_fault(tuner, FLY_TUNER_UNREADABLE, "%s", out_error != NULL ? out_error->text : "");
    joined = join_ranks(tuner, code < 0 ? NULL : out_error);
    /* Another rank may not turn its GPUs; its report says why. */
    if (code == 0 && options->turner == NULL && tuner->reason == FLY_TUNER_OTHER_RANK)
        return 0;
    if (code < 0 || joined < 0)
        return code < 0 ? code : joined;
    tuner_take_saved(tuner);
    return tuner_search_all(tuner, out_error);
}

static struct fly_tuner *make(const struct fly_tuner_options *options, const struct clock *clock)
{
    struct fly_tuner *tuner = calloc(1, sizeof *tuner);

    if (tuner == NULL)
        return NULL;
    memcpy(&tuner->options, options, options->size < sizeof *options ? options->size : sizeof *options);
    tuner->races = true;
    tuner->fixed_warmup = options->warmup_steps > 0;
    tuner->least_steps = options->profile_steps;
    tuner->level = 1.0;
    for (size_t i = 0; i < FLY_POWER_SEARCH_LIMITS_MAX; i++) {
        tuner->felt[i] = NAN;
        tuner->enforced_most_w[i] = INFINITY;
    }
    fill_defaults(&tuner->options);
    tuner->options.objective.max_slowdown = objective_bound(&options->objective);
    if (options->carbon != NULL)
        tuner->options.objective = tuner_carbon_objective(options);
    /* Along the grid the limit alone is turned. */
    if (options->carbon != NULL && options->knob == FLY_TUNER_AUTO)
        tuner->options.knob = FLY_TUNER_POWER_LIMIT;
    tuner->wish = tuner->options.knob;
    /* Nothing follows from one profile about another. */
    if (tuner->wish == FLY_TUNER_PROFILE)
        tuner_measure_every_limit(tuner);
    tuner->clock = clock;
    tuner->idle = &tuner->own_idle;
    tuner->forks = fork_generation();
    tuner->steps.fd = -1;
    tuner->cost.known = true;
    tuner->report.searches = 1;
    tuner->report.slowdown = tuner->report.step_time_s = tuner->report.noise = NAN;
    tuner->start_limit_w = tuner->standing_w = NAN;
    return tuner;
}

static void leave_alone(struct fly_tuner *tuner, enum fly_tuner_reason reason, const char *text)
{
    tuner->state = FLY_TUNER_STOPPED;
    tuner->reason = reason;
    tuner_rest(tuner, UINT64_MAX);
    tuner->report.searches = 0;
    snprintf(tuner->report.text, sizeof tuner->report.text, "%s", text);
}

/* A tuner that only reports: the command around this program controls the GPUs and sets their limit. */
static int new_steered(const struct fly_tuner_options *options, enum step_way way, struct step_writer *steps,
                       struct fly_tuner **out_tuner, struct fly_error *out_error)
{
    int code = check_options(options, out_error);
    struct fly_tuner *tuner;

    if (code < 0)
        return code;
    tuner = make(options, &clock_real);
    if (tuner == NULL)
        return error_no_memory(out_error);
    leave_alone(
        tuner, FLY_TUNER_STEERED,
        way == STEPS_OPEN
            ? "the command around this program tunes; its report says how"
            : "the command around this program would tune, but its file in " STEP_PLACE_VARIABLE
              " is not to be reached from here: start the command inside of the container, or on this "
              "node");
    if (options->rank == 0) {
        tuner->steps = *steps;
        steps->fd = -1;
        tuner_rest(tuner, 0);
    }
    *out_tuner = tuner;
    return 0;
}

int tuner_new(const struct fly_tuner_options *options, const struct clock *clock,
              struct fly_tuner **out_tuner, struct fly_error *out_error)
{
    return tuner_new_in(options, clock, NULL, out_tuner, out_error);
}

int tuner_new_in(const struct fly_tuner_options *options, const struct clock *clock,
                 struct carbon_keeper *keeper, struct fly_tuner **out_tuner, struct fly_error *out_error)
{
    struct fly_tuner *tuner;
    int code = check_options(options, out_error);

    if (code < 0)
        return code;
    tuner = make(options, clock != NULL ? clock : meter_clock(options->meter));
    if (tuner == NULL)
        return error_no_memory(out_error);
    if (disabled_by_user())
        leave_alone(tuner, FLY_TUNER_DISABLED, "FLYBALL_DISABLE is set");
    else
        code = set_up(tuner, options, out_error);
    if (code == 0 && tuner->reason != FLY_TUNER_DISABLED)
        code = tuner_carbon_open(tuner, options, keeper, out_error);
    if (code < 0) {
        fly_tuner_free(tuner);
        return code;
    }
    *out_tuner = tuner;
    return 0;
}

int fly_tuner_new(const struct fly_tuner_options *options, struct fly_tuner **out_tuner,
                  struct fly_error *out_error)
{
    return tuner_new_kept(options, NULL, out_tuner, out_error);
}

int tuner_new_kept(const struct fly_tuner_options *options, struct carbon_keeper *keeper,
                   struct fly_tuner **out_tuner, struct fly_error *out_error)
{
    struct step_writer steps;
    enum step_way way = disabled_by_user() ? STEPS_NOT_WANTED : step_writer_open(&steps);
    int code;

    if (way == STEPS_NOT_WANTED)
        return tuner_new_in(options, NULL, keeper, out_tuner, out_error);
    code = new_steered(options, way, &steps, out_tuner, out_error);
    step_writer_close(&steps);
    return code;
}

void fly_tuner_free(struct fly_tuner *tuner)
{
    if (tuner == NULL)
        return;
    if (tuner->forks == fork_generation() && tuner->options.turner != NULL) {
        const struct fly_measurement nothing = {.size = sizeof nothing};
        struct fly_measurement measured = nothing;

        tuner_carbon_epoch_end(tuner); /* all steps that began are done */
        tuner_turn_back(tuner);
        tuner_window_drop(tuner);
        if (tuner->cost.open)
            (void)fly_meter_end(tuner->options.meter, tuner->cost.window, &measured, NULL);
    }
    tuner_carbon_close(tuner);
    idle_turner_end(&tuner->own_idle);
    own_knobs_close(tuner->knobs);
    step_writer_close(&tuner->steps);
    fly_power_search_free(tuner->search);
    free(tuner->energies);
    free(tuner);
}

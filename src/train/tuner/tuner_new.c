/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/adler32.h"
#include "base/error.h"
#include "base/fork_guard.h"
#include "train/program/step_place.h"
#include "train/program/step_writer.h"
#include "train/tuner/own_knobs.h"
#include "train/tuner/tuner.h"

/* Of the mean of a window's steps. */
static const double known_time_error = 0.01;

static const char *const reason_names[] = {
    "goes on",   "disabled",  "set failed", "unreadable", "foreign change", "no figure",
    "no choice", "no memory", "all-reduce", "other rank", "no knob",        "steered",
};
_Static_assert(sizeof reason_names / sizeof reason_names[0] == FLY_TUNER_STEERED + 1, "a name for each");

static const char *const mark_names[] = {
    "not measured", "valid", "not honoured", "hot", "braked", "no energy",
};
_Static_assert(sizeof mark_names / sizeof mark_names[0] == FLY_TUNER_NO_ENERGY + 1, "a name for each");

const char *fly_tuner_reason_name(enum fly_tuner_reason reason)
{
    return (unsigned)reason <= FLY_TUNER_STEERED ? reason_names[reason] : "unknown";
}

const char *fly_tuner_mark_name(enum fly_tuner_mark mark)
{
    return (unsigned)mark <= FLY_TUNER_NO_ENERGY ? mark_names[mark] : "unknown";
}

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

static void copy_text(char *to, size_t capacity, const char *from)
{
    snprintf(to, capacity, "%s", from != NULL ? from : "");
}

static size_t own_gpus(const struct fly_tuner_options *options, const char **out_name)
{
    size_t count = 0;

    for (size_t i = 0; i < fly_meter_device_count(options->meter); i++) {
        if (strcmp(fly_meter_device_kind(options->meter, i), "GPU") != 0)
            continue;
        if (count++ == 0)
            *out_name = fly_meter_device_name(options->meter, i);
    }
    return count;
}

static void take_key(struct fly_tuner *tuner, const struct fly_tuner_options *options)
{
    const char *name = "";

    tuner->key.gpu_count = own_gpus(options, &name);
    copy_text(tuner->key.gpu_model, sizeof tuner->key.gpu_model,
              options->gpu_model != NULL ? options->gpu_model : name);
    copy_text(tuner->key.driver, sizeof tuner->key.driver, options->driver);
    copy_text(tuner->key.job_name, sizeof tuner->key.job_name, options->job_name);
    copy_text(tuner->directory, sizeof tuner->directory, options->profile_directory);
    copy_text(tuner->file, sizeof tuner->file, options->profile_file);
    tuner->key.batch_size = options->batch_size;
    tuner->key.knob = options->knob;
}

/* A number that is the same on ranks with the same limits and points. */
static double fingerprint(const struct fly_tuner *tuner)
{
    uint32_t sum = (uint32_t)tuner->limit_count * 4 + (uint32_t)tuner->options.knob * 2 +
                   (tuner->options.carbon != NULL);

    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];
        char text[160];

        snprintf(text, sizeof text, "%zu %.17g %d %.17g %.17g", i, point->limit_w, (int)point->mark,
                 point->power_w, point->time_s);
        sum = sum * 31 + adler32(text);
    }
    return (double)sum;
}

/* Whether the ranks' limits and points are the same; adds up their GPUs. */
static bool ranks_agree(struct fly_tuner *tuner, double *gpus)
{
    double mark = fingerprint(tuner), maxima[] = {mark, -mark};

    return tuner_exchange(tuner, gpus, 1, maxima, 2) && maxima[0] == -maxima[1];
}

static void forget_points(struct fly_tuner *tuner)
{
    for (size_t i = 0; i < tuner->limit_count; i++)
        tuner->points[i].mark = FLY_TUNER_NOT_MEASURED;
}

/* Points measured where energy did not matter may be too coarse where it does; how many. */
static size_t forget_coarse(struct fly_tuner *tuner)
{
    enum fly_objective_kind kind = tuner->options.objective.kind;
    size_t count = 0;

    for (size_t i = 0;
         kind != FLY_OBJECTIVE_TIME && kind != FLY_OBJECTIVE_LOWEST_LIMIT && i < tuner->limit_count; i++) {
        struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark != FLY_TUNER_VALID || point->energy_error <= 2.0 * tuner->options.energy_tolerance)
            continue;
        point->mark = FLY_TUNER_NOT_MEASURED;
        count++;
    }
    return count;
}

/* FLY_ENOTFOUND where none was asked for. */
static int saved_path(const struct fly_tuner *tuner, char path[PROFILE_PATH_MAX], struct fly_error *out_error)
{
    if (tuner->file[0] != '\0')
        snprintf(path, PROFILE_PATH_MAX, "%s", tuner->file);
    else if (tuner->directory[0] != '\0')
        return profile_path(tuner->directory, &tuner->key, path, out_error);
    else
        return FLY_ENOTFOUND;
    return 0;
}

/* Reads a saved profile, and lets it count where every rank has the same. */
static void take_saved(struct fly_tuner *tuner)
{
    char path[PROFILE_PATH_MAX];
    struct fly_error error = {.text = ""};
    size_t read = 0;
    double gpus = 0.0;
    int code = saved_path(tuner, path, &error);

    if (code == 0)
        code = profile_read(path, &tuner->key, tuner->points, tuner->limit_count, &read, &error);
    if (code == 0)
        read -= forget_coarse(tuner);
    if (code < 0 && (code != FLY_ENOTFOUND || tuner->file[0] != '\0'))
        snprintf(tuner->report.profile, sizeof tuner->report.profile, "%.255s", error.text);
    if (!ranks_agree(tuner, &gpus)) {
        forget_points(tuner);
        if (read > 0)
            copy_text(tuner->report.profile, sizeof tuner->report.profile,
                      "the saved profile is not the same on all ranks; measuring anew");
        return;
    }
    tuner->report.reused = read > 0;
    for (size_t i = 0; i < tuner->limit_count; i++)
        tuner->saved[i] = tuner->points[i].mark == FLY_TUNER_VALID;
    if (read > 0)
        snprintf(tuner->report.profile, sizeof tuner->report.profile,
                 "reused %zu of %zu limits from '%.200s'", read, tuner->limit_count, path);
}

static int check_options(const struct fly_tuner_options *options, struct fly_error *out_error)
{
    if (options->size < sizeof *options)
        return error_set(out_error, FLY_EUSAGE, "tuner: options.size is %zu; set it to sizeof options",
                         options->size);
    if (options->meter == NULL)
        return error_set(out_error, FLY_EUSAGE, "tuner: options need a meter");
    if ((unsigned)options->knob > FLY_TUNER_CLOCK)
        return error_set(out_error, FLY_EUSAGE, "tuner: there is no knob %d", (int)options->knob);
    return tuner_carbon_check(options, out_error);
}

/* The search refuses what could never choose. */
int tuner_make_search(struct fly_tuner *tuner, struct fly_error *out_error)
{
    double limits_w[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_power_point saved[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = 0;
    struct fly_power_search_options options = {.size = sizeof options,
                                               .limits_w = limits_w,
                                               .limit_count = tuner->limit_count,
                                               .wait_steps = tuner->options.wait_steps,
                                               .warmup_steps = tuner->options.warmup_steps,
                                               .profile_steps = tuner->options.profile_steps,
                                               .objective = tuner->options.objective,
                                               .max_power_w = tuner->options.max_power_w,
                                               .profile = saved};

    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        limits_w[i] = point->limit_w;
        if (point->mark == FLY_TUNER_VALID)
            saved[count++] = (struct fly_power_point){point->limit_w, point->power_w, point->time_s};
    }
    options.profile_count = count;
    tuner->window_steps = tuner->options.profile_steps;
    tuner->looking = false;
    return fly_power_search_new(&options, &tuner->search, out_error);
}

/* Joins the ranks at the start. */
static int join_ranks(struct fly_tuner *tuner, struct fly_error *out_error)
{
    double gpus = (double)tuner->key.gpu_count;

    if (!ranks_agree(tuner, &gpus))
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

/* What this rank can say for itself. */
static int set_up_alone(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                        struct fly_error *out_error)
{
    int code = tuner_take_settings(tuner, options, out_error);

    if (code == 0)
        code = tuner->options.turner->standing(tuner->options.turner_data, &tuner->start_limit_w, out_error);
    if (code < 0)
        return code;
    tuner->standing_w = tuner->start_limit_w;
    tuner->device_count = fly_meter_device_count(options->meter);
    tuner->energies = calloc(tuner->device_count + 1, sizeof *tuner->energies);
    if (tuner->energies == NULL)
        return error_no_memory(out_error);
    take_key(tuner, options);
    return 0;
}

/* The knobs of this rank's GPUs, where the caller brings none; what is against it is no fault of the
 * caller's.
 */
static void take_knobs(struct fly_tuner *tuner)
{
    struct fly_error error = {.text = ""};
    struct fly_turner_range range;
    double limit_w;
    int code = own_knobs_open(tuner->options.meter, tuner->options.knob, &tuner->knobs, &error);

    tuner->options.turner = &own_knobs_turner;
    tuner->options.turner_data = tuner->knobs;
    if (code == 0)
        code = own_knobs_turner.range(tuner->knobs, &range, &error);
    if (code == 0)
        code = own_knobs_turner.standing(tuner->knobs, &limit_w, &error);
    if (code < 0)
        tuner_fault(tuner, FLY_TUNER_NO_KNOB, "%s", error.text);
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
    code = set_up_alone(tuner, options, out_error);
    /* The others wait for this rank, also where it cannot go on. */
    if (code < 0)
        tuner_fault(tuner, FLY_TUNER_UNREADABLE, "%s", out_error != NULL ? out_error->text : "");
    joined = join_ranks(tuner, code < 0 ? NULL : out_error);
    /* Another rank's GPUs are not ours to turn: its report says so. */
    if (code == 0 && options->turner == NULL && tuner->reason == FLY_TUNER_OTHER_RANK)
        return 0;
    if (code < 0 || joined < 0)
        return code < 0 ? code : joined;
    take_saved(tuner);
    return tuner_make_search(tuner, out_error);
}

static bool is_disabled(void)
{
    const char *value = getenv("FLYBALL_DISABLE");

    return value != NULL && strcmp(value, "1") == 0;
}

static struct fly_tuner *make(const struct fly_tuner_options *options, const struct clock *clock)
{
    struct fly_tuner *tuner = calloc(1, sizeof *tuner);

    if (tuner == NULL)
        return NULL;
    tuner->options = *options;
    fill_defaults(&tuner->options);
    if (options->carbon != NULL)
        tuner->options.objective = tuner_carbon_objective(options);
    tuner->clock = clock;
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
    copy_text(tuner->report.text, sizeof tuner->report.text, text);
}

/* One that only reports: the command around this program has the GPUs, and sets their limit. */
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
    tuner = make(options, clock != NULL ? clock : &clock_real);
    if (tuner == NULL)
        return error_no_memory(out_error);
    if (is_disabled())
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

void tuner_measure_every_limit(struct fly_tuner *tuner)
{
    tuner->every_limit = true;
}

/* Points come without their errors: as much as windows are made to have. */
static void know(struct fly_tuner *tuner, struct fly_tuner_point *point, const struct fly_power_point *known)
{
    point->mark = FLY_TUNER_VALID;
    point->power_w = known->power_w;
    point->time_s = known->time_s;
    point->time_error = known_time_error;
    point->energy_error = tuner->options.energy_tolerance;
}

int tuner_know(struct fly_tuner *tuner, const struct fly_power_point *points, size_t count,
               struct fly_error *out_error)
{
    if (tuner->state != FLY_TUNER_SEARCHING)
        return 0;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        for (size_t k = 0; k < count && tuner->points[i].mark == FLY_TUNER_NOT_MEASURED; k++) {
            if (tuner_is_same(tuner, tuner->points[i].limit_w, points[k].limit_w))
                know(tuner, &tuner->points[i], &points[k]);
        }
        tuner->saved[i] = tuner->points[i].mark == FLY_TUNER_VALID;
        tuner->report.reused |= tuner->saved[i];
    }
    fly_power_search_free(tuner->search);
    tuner->search = NULL;
    return tuner_make_search(tuner, out_error);
}

bool tuner_only_looks(const struct fly_tuner *tuner)
{
    return tuner->state == FLY_TUNER_SEARCHING && tuner->looking;
}

const struct profile_key *tuner_key(const struct fly_tuner *tuner)
{
    return &tuner->key;
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
    enum step_way way = is_disabled() ? STEPS_NOT_WANTED : step_writer_open(&steps);
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

        tuner_carbon_epoch_end(tuner); /* all steps that began are behind */
        tuner_turn_back(tuner);
        tuner_window_drop(tuner);
        if (tuner->cost.open)
            (void)fly_meter_end(tuner->options.meter, tuner->cost.window, &measured, NULL);
    }
    tuner_carbon_close(tuner);
    own_knobs_close(tuner->knobs);
    step_writer_close(&tuner->steps);
    fly_power_search_free(tuner->search);
    free(tuner->energies);
    free(tuner);
}

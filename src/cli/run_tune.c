/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* How often the knob is looked after, and how often steps are asked for where the system does not tell. */
static const double check_s = 0.4, ask_s = 0.005;

/* Lines that are taken before signals have their turn. */
enum { LINES_AT_ONCE = 1000 };

/* Said when a driver does not come back from a call. */
static const char never_turned[] =
    "flyball: a driver did not answer when a limit was to be turned; the guard process puts back what stood "
    "before, and 'flyball power restore' does so later\n";

const char *const run_tune_objectives[] = {
    [FLY_OBJECTIVE_ENERGY] = "energy", [FLY_OBJECTIVE_TIME] = "time", [FLY_OBJECTIVE_COST] = "cost", NULL};

/* The operator's lock lies where the option says that this machine is, or where it always lies. */
static void find_readonly(const struct cli_call *call, struct run_tune *tune)
{
    const char *root = cli_text(call, "sysfs-root");

    if (strcmp(root, "/") == 0)
        return;
    snprintf(tune->readonly_path, sizeof tune->readonly_path, "%.400s%s", root, KNOB_READONLY_PATH);
    if (access(tune->readonly_path, F_OK) == 0)
        tune->knob_options.readonly_path = tune->readonly_path;
}

int run_tune_read(const struct cli_call *call, struct run_tune *out_tune, struct fly_error *out_error)
{
    static const char *const names[] = {"objective", "eta", "max-slowdown", "profile-steps"};
    const char *bound = cli_text(call, "max-slowdown");

    out_tune->wanted = cli_flag(call, "tune");
    out_tune->lines = (struct step_lines){.file = -1, .notice = -1, .program_end = -1};
    for (size_t i = 0; !out_tune->wanted && i < sizeof names / sizeof names[0]; i++) {
        if (cli_source(call, names[i]) == CLI_OPTION)
            return cli_usage(call, out_error, "--%s is about --tune, which is not given", names[i]);
    }
    out_tune->objective = (struct fly_objective){
        .kind = (enum fly_objective_kind)cli_choice(call, "objective"),
        .eta = cli_real(call, "eta"),
        .max_slowdown = INFINITY,
    };
    if (bound != NULL && fly_slowdown_parse(bound, &out_tune->objective.max_slowdown, NULL) < 0)
        return cli_value_error(call, "max-slowdown", bound,
                               "a percentage from 0% or a factor from 1x, as in 3% or 1.03x", out_error);
    out_tune->profile_steps = (uint32_t)cli_integer(call, "profile-steps");
    out_tune->knob_options = (struct knob_options){
        .program = "flyball run --tune",
        .nvml_path = cli_text(call, "nvml"),
        .mps_pipe_directory = getenv("CUDA_MPS_PIPE_DIRECTORY"),
    };
    find_readonly(call, out_tune);
    return 0;
}

static void put_off(struct run_tune *tune, const char *text)
{
    if (tune->off[0] == '\0')
        snprintf(tune->off, sizeof tune->off, "%s", text);
}

void run_tune_prepare(struct run_tune *tune)
{
    struct fly_error error;

    if (tune->wanted && step_lines_open(&tune->lines, &error) < 0)
        put_off(tune, error.text);
}

void run_tune_forked(struct run_tune *tune)
{
    step_lines_passed(&tune->lines);
}

static int open_knob(struct run_tune *tune, struct fly_error *out_error)
{
    int result = knob_open(&tune->knob_options, tune->gpus, tune->gpu_count, &tune->knob, out_error);

    tune->knob_opened = result == 0;
    for (size_t i = 0; result == 0 && i < tune->gpu_count; i++)
        result = knob_may_turn(tune->knob, i, out_error);
    return result;
}

static int open_tuner(struct run_tune *tune, struct fly_error *out_error)
{
    const struct fly_tuner_options options = {
        .size = sizeof options,
        .meter = tune->meter,
        .turner = &knob_turner,
        .turner_data = &tune->turner,
        .objective = tune->objective,
        .profile_steps = tune->profile_steps,
    };

    tune->turner = (struct knob_turner){.knob = tune->knob, .devices = tune->gpus, .count = tune->gpu_count};
    return fly_tuner_new(&options, &tune->tuner, out_error);
}

/* At the first step: before, nobody is to be locked out, and no guard is needed. */
static void open_all(struct run_tune *tune)
{
    struct fly_error error = {.text = ""};
    int result = 0;

    tune->tried = true;
    if (tune->meter == NULL)
        result = error_set(&error, FLY_EUNSUPPORTED, "nothing is measured");
    else if (tune->gpu_count == 0)
        result = error_set(&error, FLY_EUNSUPPORTED, "there is no GPU whose power could be limited");
    if (result == 0)
        result = open_knob(tune, &error);
    if (result == 0)
        result = open_tuner(tune, &error);
    if (result == 0)
        return;
    put_off(tune, error.text);
    knob_close(tune->knob, tune->knob_reports);
    tune->knob = NULL;
}

/* Keeps what is known and ends the tuner, which sets the start's limit again. */
static void close_tuner(struct run_tune *tune)
{
    if (tune->tuner == NULL)
        return;
    tune->report.size = sizeof tune->report;
    tune->reported = fly_tuner_report(tune->tuner, &tune->report) == 0;
    tune->point_count = fly_tuner_points(tune->tuner, tune->points, FLY_POWER_SEARCH_LIMITS_MAX);
    fly_tuner_free(tune->tuner);
    tune->tuner = NULL;
}

/* What the driver refuses to this user has one remedy. */
static void say_permission(struct run_tune *tune)
{
    if (tune->reported && tune->report.reason == FLY_TUNER_SET_FAILED && tune->turner.fault == FLY_EPERM &&
        geteuid() != 0 && !site_offers_more(knob_site(tune->knob), tune->gpus[0]))
        put_off(tune,
                "the driver lets root alone set limits; 'sudo -E flyball run --tune -- PROGRAM' would tune");
}

static void epoch_end(struct run_tune *tune)
{
    if (tune->epoch_open && tune->tuner != NULL)
        (void)fly_tuner_epoch_end(tune->tuner);
    tune->epoch_open = false;
}

static void step_begin(struct run_tune *tune)
{
    if (!tune->tried)
        open_all(tune);
    if (tune->tuner == NULL)
        return;
    if (tune->epoch_wanted && !tune->epoch_open)
        (void)fly_tuner_epoch_begin(tune->tuner);
    tune->epoch_open = tune->epoch_open || tune->epoch_wanted;
    tune->epoch_wanted = false;
    (void)fly_tuner_step_begin(tune->tuner);
}

static void take(struct run_tune *tune, enum step_event event)
{
    switch (event) {
    case STEP_BEGIN:
        step_begin(tune);
        break;
    case STEP_EPOCH_BEGIN:
        epoch_end(tune);
        tune->epoch_wanted = true;
        break;
    case STEP_EPOCH_END:
        epoch_end(tune);
        break;
    case STEP_MALFORMED:
        break;
    }
}

/* Another program's limit, or a guard that was killed: all of it goes back, and the program goes on. */
static void look_after_knob(struct run_tune *tune)
{
    struct fly_error error;

    if (tune->knob == NULL || tune->off[0] != '\0' || knob_check(tune->knob, &error) == 0)
        return;
    put_off(tune, error.text);
    close_tuner(tune);
    (void)knob_restore(tune->knob, &error);
}

/* Takes the lines that have come; whether there may be more. */
static bool take_lines(struct run_tune *tune)
{
    enum step_event event;

    step_lines_noticed(&tune->lines);
    for (int i = 0; i < LINES_AT_ONCE; i++) {
        if (!step_lines_next(&tune->lines, &event))
            return false;
        take(tune, event);
    }
    return true;
}

void run_tune_wait(struct run_tune *tune, struct child *child, const struct device_list *list,
                   struct fly_meter *meter)
{
    int fd = step_lines_fd(&tune->lines);
    struct mono_time check = mono_now();
    bool more = false;

    tune->meter = meter;
    for (size_t i = 0; meter != NULL && i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU)
            tune->gpus[tune->gpu_count++] = &list->devices[i];
    }
    while (tune->lines.file >= 0) {
        struct mono_time now = mono_now();

        if (child_wait_input(child, fd, more ? now : mono_after_s(now, fd >= 0 ? check_s : ask_s)))
            break;
        child_guard_begin(child, never_turned);
        more = take_lines(tune);
        if (mono_elapsed_s(check, mono_now()) >= check_s) {
            look_after_knob(tune);
            check = mono_now();
        }
        child_guard_end(child);
    }
    child_wait(child);
}

/* Lines of a program that ended at once are counted; nothing is begun for them. */
static void take_late_lines(struct run_tune *tune)
{
    for (enum step_event event; step_lines_next(&tune->lines, &event);)
        ;
    if (tune->lines.events[STEP_BEGIN] == 0)
        put_off(tune,
                "the program reported no step; a line for each, written to the descriptor in " STEP_VARIABLE
                ", is what tuning goes by");
    else if (!tune->tried)
        put_off(tune, "the program had ended before its steps were seen");
}

void run_tune_end(struct run_tune *tune)
{
    if (!tune->wanted)
        return;
    take_late_lines(tune);
    close_tuner(tune);
    say_permission(tune);
    if (tune->knob != NULL)
        knob_close(tune->knob, tune->knob_reports);
    tune->knob = NULL;
    step_lines_close(&tune->lines);
}

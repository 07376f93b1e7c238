/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_tune.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/words.h"
#include "cli/kit/amount.h"
#include "train/tuner/tuner.h"

/* How often to check the knob. */
static const double check_s = 0.4;

/* How many lines to take before signals are handled. */
enum { LINES_AT_ONCE = 1000 };

/* Printed if a call into the driver does not return. */
static const char never_turned[] =
    "flyball: a driver did not answer when a limit was to be turned; the guard process puts back what stood "
    "before, and 'flyball power restore' does so later\n";

/* Keeps only the first reason. */
static void put_off(struct run_tune *tune, int code, const char *text)
{
    if (tune->off[0] != '\0')
        return;
    tune->off_code = code;
    words_fit(tune->off, sizeof tune->off, snprintf(tune->off, sizeof tune->off, "%s", text));
}

void run_tune_prepare(struct run_tune *tune)
{
    struct fly_error error;

    if (!tune->wanted)
        return;
    if (step_lines_open(&tune->lines, &error) < 0)
        put_off(tune, error.code, error.text);
    else if (!tune->no_hook)
        python_hook_offer(&tune->hook, &tune->lines.hook);
}

void run_tune_forked(struct run_tune *tune)
{
    step_lines_passed(&tune->lines);
    python_hook_take_back(&tune->hook);
}

static int open_knob(struct run_tune *tune, struct fly_error *out_error)
{
    int result = knob_open(&tune->knob_options, tune->gpus, tune->gpu_count, &tune->knob, out_error);

    tune->knob_opened |= result == 0;
    for (size_t i = 0; result == 0 && i < tune->gpu_count; i++)
        result = knob_may_turn(tune->knob, i, out_error);
    return result;
}

/* For when steps come again. */
static int take_knob(void *data, struct fly_error *out_error)
{
    struct run_tune *tune = data;
    int result;

    tune->knob_options.resumes = true;
    result = open_knob(tune, out_error);
    tune->turner.knob = tune->knob;
    return result;
}

static void give_knob_back(void *data)
{
    struct run_tune *tune = data;

    knob_close(tune->knob, tune->knob_reports);
    tune->knob = tune->turner.knob = NULL;
}

/* Gives the GPUs back while the program reports no steps. This loop looks, so there is no thread. */
static void guard_idling(struct run_tune *tune, struct fly_tuner_options *options)
{
    idle_turner_init(&tune->idle, &(struct idle_options){.steps = &tune->steps_seen,
                                                         .clock = &clock_real,
                                                         .give_back_s = tune->give_back_s,
                                                         .threadless = true,
                                                         .open = take_knob,
                                                         .close = give_knob_back,
                                                         .data = tune});
    idle_turner_add(&tune->idle, &options->turner, &options->turner_data);
    idle_turner_add(&tune->idle, &options->clock_turner, &options->clock_turner_data);
}

static int open_tuner(struct run_tune *tune, struct fly_error *out_error)
{
    const struct fly_objective without_bound = {FLY_OBJECTIVE_ENERGY, 0, INFINITY};
    struct fly_tuner_options options = {
        .size = sizeof options,
        .meter = tune->meter,
        .turner = tune->wish == FLY_TUNER_CLOCK     ? &clock_turner
                  : tune->wish == FLY_TUNER_PROFILE ? &workload_turner
                                                    : &knob_turner,
        .turner_data = &tune->turner,
        .clock_turner = &clock_turner,
        .clock_turner_data = &tune->turner,
        .knob = tune->wish,
        .objective = tune->every_limit ? without_bound : tune->objective,
        .profile_steps = tune->profile_steps,
        .energy_tolerance = tune->energy_tolerance,
        .profile_directory = tune->every_limit ? NULL : tune->profile_directory,
        .profile_file = tune->profile_file,
        .driver = tune->gpus[0]->info.driver,
        .job_name = tune->job_name,
        .batch_size = tune->batch_size,
        .carbon = tune->carbon,
    };
    int result;

    tune->turner = (struct knob_turner){.knob = tune->knob, .devices = tune->gpus, .count = tune->gpu_count};
    guard_idling(tune, &options);
    result = tuner_new_kept(&options, tune->keeper, &tune->tuner, out_error);
    if (result == 0)
        tune->turner.left_alone = tuner_left_alone(tune->tuner);
    if (result == 0 && tune->every_limit)
        tuner_measure_every_limit(tune->tuner);
    return result;
}

/* Happens at the first step: before it, nobody needs to be locked out, and no guard is needed. */
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
    put_off(tune, result, error.text);
    idle_turner_end(&tune->idle);
    knob_close(tune->knob, tune->knob_reports);
    tune->knob = NULL;
}

/* Keeps what is known and ends the tuner, which restores the limit of the start. */
static void close_tuner(struct run_tune *tune)
{
    if (tune->tuner == NULL)
        return;
    tune->report.size = sizeof tune->report;
    tune->reported = tuner_report_chosen(tune->tuner, &tune->report) == 0;
    tune->carbon_report.size = sizeof tune->carbon_report;
    if (fly_tuner_carbon(tune->tuner, &tune->carbon_report) < 0)
        tune->carbon_report.size = 0;
    tune->point_count = fly_tuner_points(tune->tuner, tune->points, FLY_POWER_SEARCH_LIMITS_MAX);
    for (size_t i = 0; i < tune->point_count; i++) {
        tune->profiles[i] = fly_tuner_point_profile(tune->tuner, i);
        tune->enforced_w[i] = fly_tuner_enforced_w(tune->tuner, i);
    }
    (void)tuner_summary(tune->tuner, amount_plus_minus(), tune->summary);
    (void)tuner_summary_next(tune->tuner, amount_plus_minus(), tune->next);
    tune->key = *tuner_key(tune->tuner);
    fly_tuner_free(tune->tuner);
    tune->tuner = NULL;
    idle_turner_end(&tune->idle);
}

/* All that the driver refuses to this user has the same remedy. */
static void say_permission(struct run_tune *tune)
{
    char text[RUN_TUNE_TEXT_MAX];

    if (tune->knob == NULL || !tune->reported || tune->report.reason != FLY_TUNER_SET_FAILED ||
        (tune->turner.fault != FLY_EPERM && tune->turner.clock_fault != FLY_EPERM) || geteuid() == 0 ||
        site_offers_more(knob_site(tune->knob)))
        return;
    snprintf(text, sizeof text, "the driver lets root alone set limits; 'sudo -E %s -- PROGRAM' would %s",
             tune->knob_options.program, tune->every_limit ? "measure them" : "tune");
    put_off(tune, FLY_EPERM, text);
}

/* A profile ends with its last limit; the program goes on at the limit of the start. */
static void finish_profile(struct run_tune *tune)
{
    tune->over = true;
    close_tuner(tune);
    say_permission(tune);
    knob_close(tune->knob, tune->knob_reports);
    tune->knob = NULL;
}

/* Tells the tuner how many steps to expect; those that it missed are done too. */
static void expect_steps(struct run_tune *tune)
{
    uint64_t missed = tune->lines.events[STEP_BEGIN] - tune->steps_told;
    uint64_t steps = 0;

    if (tune->carbon == NULL || tune->tuner == NULL)
        return;
    if (tune->carbon->steps > 0)
        steps = tune->carbon->steps;
    else if (tune->epochs_done > 0)
        steps = (uint64_t)((double)tune->steps_done / (double)tune->epochs_done * (double)tune->epochs + 0.5);
    if (steps > 0)
        tuner_expect_steps(tune->tuner, steps > missed ? steps - missed : 1);
}

/* An epoch without steps does not count. */
static void count_epoch(struct run_tune *tune)
{
    uint64_t steps = tune->lines.events[STEP_BEGIN];

    if (steps == tune->steps_done)
        return;
    tune->steps_done = steps;
    tune->epochs_done++;
    expect_steps(tune);
}

static void epoch_end(struct run_tune *tune)
{
    if (tune->epoch_open && tune->tuner != NULL)
        (void)fly_tuner_epoch_end(tune->tuner);
    tune->epoch_open = false;
    count_epoch(tune);
}

static void epoch_begin(struct run_tune *tune)
{
    epoch_end(tune);
    tune->epoch_wanted = true;
}

/*
 * To start a guard or set a limit takes time, and the program's steps of that time are in the
 * queue. They would look like steps that take no time. No window is open then.
 */
static void skip_missed(struct run_tune *tune)
{
    off_t end = step_lines_end(&tune->lines);
    enum step_event event;

    while (step_lines_at(&tune->lines) < end && step_lines_next(&tune->lines, &event)) {
        if (event == STEP_EPOCH_BEGIN)
            epoch_begin(tune);
        if (event == STEP_EPOCH_END)
            epoch_end(tune);
    }
    expect_steps(tune);
}

static void step_begin(struct run_tune *tune)
{
    unsigned turns = tune->turner.turns;

    if (!tune->tried) {
        open_all(tune);
        skip_missed(tune);
    }
    if (tune->tuner == NULL)
        return;
    if (tune->epoch_wanted && !tune->epoch_open)
        (void)fly_tuner_epoch_begin(tune->tuner);
    tune->epoch_open = tune->epoch_open || tune->epoch_wanted;
    tune->epoch_wanted = false;
    tune->steps_told++;
    tune->steps_seen = tune->lines.events[STEP_BEGIN];
    (void)fly_tuner_step_begin(tune->tuner);
    if (tune->turner.turns != turns)
        skip_missed(tune);
    if (tune->every_limit && fly_tuner_state(tune->tuner) != FLY_TUNER_SEARCHING)
        finish_profile(tune);
}

static void take(struct run_tune *tune, enum step_event event)
{
    switch (event) {
    case STEP_BEGIN:
        step_begin(tune);
        break;
    case STEP_EPOCH_BEGIN:
        epoch_begin(tune);
        break;
    case STEP_EPOCH_END:
    case STEP_REPORT:
        epoch_end(tune);
        break;
    case STEP_OUT_OF_MEMORY:
    case STEP_SESSION:
    case STEP_HOOK:
    case STEP_MALFORMED:
        break;
    }
}

static bool any_turned(const struct run_tune *tune)
{
    for (size_t i = 0; i < tune->gpu_count; i++) {
        enum knob_state state = knob_report(tune->knob, i)->state;

        if (state == KNOB_TURNED || state == KNOB_STUCK)
            return true;
    }
    return false;
}

/*
 * If another program set a limit, or a guard was killed, everything is restored and the program
 * goes on. If the tuner stopped and could not restore, this tries again.
 */
static void look_after_knob(struct run_tune *tune)
{
    struct fly_error error;

    if (tune->knob == NULL || tune->off[0] != '\0')
        return;
    if (knob_check(tune->knob, &error) < 0) {
        put_off(tune, error.code, error.text);
        close_tuner(tune);
        (void)knob_restore(tune->knob, &error);
    } else if (tune->tuner != NULL && fly_tuner_state(tune->tuner) == FLY_TUNER_STOPPED && any_turned(tune)) {
        (void)knob_restore(tune->knob, NULL);
    }
}

/* Acts as if the program reported no steps at all. */
static void heed_flood(struct run_tune *tune)
{
    if (!tune->lines.flooded || tune->over || tune->off[0] != '\0')
        return;
    put_off(tune, FLY_ELIMIT, step_lines_flood);
    if (tune->every_limit) {
        finish_profile(tune);
        return;
    }
    close_tuner(tune);
    if (tune->knob != NULL)
        (void)knob_restore(tune->knob, NULL);
}

/* Counts all steps, including those that the tuner missed. */
static void keep_steps(struct run_tune *tune)
{
    uint64_t steps = tune->lines.events[STEP_BEGIN];

    if (tune->keeper != NULL && steps > tune->steps_kept)
        carbon_keeper_steps(tune->keeper, steps - tune->steps_kept);
    tune->steps_kept = steps;
}

/* Takes the lines that have come. Returns whether there may be more. */
static bool take_lines(struct run_tune *tune)
{
    enum step_event event;
    bool more = false;

    step_lines_noticed(&tune->lines);
    for (int i = 0; i < LINES_AT_ONCE; i++) {
        more = step_lines_next(&tune->lines, &event);
        if (!more)
            break;
        take(tune, event);
    }
    keep_steps(tune);
    heed_flood(tune);
    return more;
}

static void take_gpus(struct run_tune *tune, const struct device_list *list, struct fly_meter *meter)
{
    tune->meter = meter;
    tune->gpu_count = 0;
    for (size_t i = 0; meter != NULL && i < list->count; i++) {
        if (list->devices[i].info.kind == DEVICE_GPU)
            tune->gpus[tune->gpu_count++] = &list->devices[i];
    }
}

static void show_status(struct run_tune *tune)
{
    char text[STATUS_TEXT_MAX];

    if (tune->over || !status_line_is_due(&tune->status))
        return;
    run_tune_status(tune, text);
    status_line_show(&tune->status, text);
}

static void hide_status(void *state)
{
    status_line_end(state);
}

void run_tune_wait(struct run_tune *tune, struct child *child, const struct device_list *list,
                   struct fly_meter *meter)
{
    int fd = step_lines_fd(&tune->lines);
    struct mono_time check = mono_now();
    bool more = false, was_over = tune->over;

    take_gpus(tune, list, meter);
    child->before_stop = hide_status;
    child->before_stop_state = &tune->status;
    while (tune->lines.file.file >= 0 && tune->over == was_over) {
        struct mono_time now = mono_now();

        if (child_wait_input(child, fd,
                             more ? now : mono_after_s(now, step_lines_wait_s(&tune->lines, check_s))))
            break;
        child_guard_begin(child, never_turned);
        more = take_lines(tune);
        tune->steps_seen = tune->lines.events[STEP_BEGIN];
        idle_turner_look(&tune->idle);
        if (mono_elapsed_s(check, mono_now()) >= check_s) {
            look_after_knob(tune);
            check = mono_now();
        }
        child_guard_end(child);
        show_status(tune);
    }
    status_line_end(&tune->status);
    if (tune->over == was_over)
        child_wait(child);
}

/* What of the program's Python kept the steps from here, or what tells them without it. */
static void say_no_step(struct run_tune *tune)
{
    static const char none[] = "the program reported no step; ";
    static const char lines[] =
        "a line for each, written to the file in " STEP_PLACE_VARIABLE
        ", is what tuning goes by; inside a container and on another node it is not there";
    char why[STEP_HOOK_SENTENCE_MAX], text[sizeof none + STEP_HOOK_SENTENCE_MAX];

    step_hook_sentence(&tune->lines.hook, 0, why);
    snprintf(text, sizeof text, "%s%s", none, why[0] != '\0' ? why : lines);
    put_off(tune, FLY_ESTATE, text);
}

/* Counts the lines of a program that ended at once; begins nothing for them. */
static void take_late_lines(struct run_tune *tune)
{
    step_lines_last(&tune->lines);
    for (enum step_event event; step_lines_next(&tune->lines, &event);)
        ;
    keep_steps(tune);
    if (tune->lines.flooded)
        put_off(tune, FLY_ELIMIT, step_lines_flood);
    else if (tune->lines.events[STEP_BEGIN] == 0)
        say_no_step(tune);
    else if (!tune->tried)
        put_off(tune, FLY_ESTATE, "the program had ended before its steps were seen");
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

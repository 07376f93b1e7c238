/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/tuner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fork_guard.h"
#include "train/tuner/tuner_choice.h"

/* Shares of a window beyond which heat or an outside brake spoils it. */
static const double spoiled_share = 0.02;
/* A limit holds a GPU down when it is named as the cause for that share, or nearly all of it is drawn; a
 * ceiling, when the clock is next to it. */
static const double bound_share = 0.5, bound_fraction = 0.9;
/* Below that fraction of a limit no GPU feels it. */
static const double unfelt_fraction = 0.8;
/* A step time that far from the profile's is another workload. */
static const double drift_fraction = 0.05;

/* Whether all ranks go on; they call it at the same step. */
static bool all_go_on(struct fly_tuner *tuner)
{
    double nothing = 0.0;

    return tuner_exchange(tuner, &nothing, 0, &nothing, 0);
}

static void begin_search(struct fly_tuner *tuner)
{
    fly_power_search_free(tuner->search);
    tuner->search = NULL;
    tuner->state = FLY_TUNER_SEARCHING;
    tuner->report.searches++;
    tuner->report.backoffs = 0;
    tuner->report.reused = false;
    tuner->report.looks = 0;
    tuner->report.noise = NAN;
    tuner->noise = (struct tuner_noise){0};
    tuner->spent_s = tuner->spent_j = 0.0;
    tuner->spent_steps = 0;
    tuner->at = 0;
    tuner->cost = (struct tuner_cost){.known = true};
    tuner_window_forget(tuner);
    for (size_t i = 0; i < tuner->limit_count; i++) {
        tuner->points[i].mark = FLY_TUNER_NOT_MEASURED;
        tuner->saved[i] = false;
        tuner->visits[i] = (struct tuner_visits){0};
    }
    if (tuner_make_search(tuner, NULL) < 0)
        tuner_fault(tuner, FLY_TUNER_NO_MEMORY, "no memory for another search");
    (void)all_go_on(tuner);
}

/* A search over one limit alone: it warms up, and measures across epochs' ends. */
static void begin_one(struct fly_tuner *tuner, size_t place, uint32_t steps)
{
    const struct fly_power_search_options options = {
        .size = sizeof options,
        .limits_w = &tuner->points[place].limit_w,
        .limit_count = 1,
        .warmup_steps = tuner->options.warmup_steps,
        .profile_steps = steps,
        .objective = {.kind = FLY_OBJECTIVE_TIME, .max_slowdown = INFINITY},
    };

    fly_power_search_free(tuner->search);
    tuner->search = NULL;
    tuner->window_steps = steps;
    tuner_rest(tuner, 0);
    tuner_window_forget(tuner);
    tuner->at = place;
    if (fly_power_search_new(&options, &tuner->search, NULL) < 0)
        tuner_fault(tuner, FLY_TUNER_NO_MEMORY, "no memory to measure a limit again");
    (void)all_go_on(tuner);
}

static void begin_check(struct fly_tuner *tuner)
{
    tuner->looking = false;
    tuner->check = (struct tuner_visit){0};
    tuner->state = FLY_TUNER_CHECKING;
    begin_one(tuner, tuner->chosen, tuner->options.profile_steps);
}

void tuner_check_anew(struct fly_tuner *tuner)
{
    tuner_window_drop(tuner);
    begin_check(tuner);
}

static void begin_look(struct fly_tuner *tuner, size_t place)
{
    tuner->looking = true;
    tuner->report.looks++;
    begin_one(tuner, place, tuner_look_steps(tuner));
}

static void settle(struct fly_tuner *tuner)
{
    tuner->state = FLY_TUNER_SETTLED;
    tuner->confirming = false;
    tuner_carbon_settle(tuner);
}

static void save(struct fly_tuner *tuner)
{
    char path[PROFILE_PATH_MAX];
    struct fly_error error = {.text = ""};

    if (tuner->options.rank != 0 || tuner->directory[0] == '\0')
        return;
    if (profile_path(tuner->directory, &tuner->key, path, &error) < 0 ||
        profile_write(path, &tuner->key, tuner->points, tuner->limit_count, &error) < 0)
        snprintf(tuner->report.profile, sizeof tuner->report.profile, "not saved: %.240s", error.text);
}

/* Every limit is measured or left out: choose, and see whether it keeps what it promises. */
static void finish_search(struct fly_tuner *tuner)
{
    bool measured = false;
    size_t again;

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (tuner_next_look(tuner, &again)) {
        begin_look(tuner, again);
        return;
    }
    if (!tuner_choose(tuner, tuner->limit_count, &tuner->chosen)) {
        enum fly_tuner_mark mark = tuner->points[0].mark;
        char text[TUNER_SETTING_MAX];

        tuner_fault(tuner, FLY_TUNER_NO_CHOICE, "no valid measurement to choose by: the %s is marked '%s'",
                    tuner_setting_text(tuner, tuner->points[0].limit_w, text), fly_tuner_mark_name(mark));
        (void)all_go_on(tuner);
        return;
    }
    for (size_t i = 0; i < tuner->limit_count; i++)
        measured |= tuner->points[i].mark == FLY_TUNER_VALID && !tuner->saved[i];
    tuner->report.ties = tuner_ties(tuner, tuner->chosen);
    tuner_turn(tuner, tuner->points[tuner->chosen].limit_w);
    tuner_cost_close(tuner);
    /* A saved profile may be as old as it likes: what does not fit is measured at once. */
    tuner->since_search = measured ? 0 : tuner->options.remeasure_distance_steps;
    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (measured)
        save(tuner);
    tuner_carbon_profile(tuner);
    if (tuner->state == FLY_TUNER_STOPPED)
        return;
    tuner->confirming = true;
    begin_check(tuner);
}

static enum fly_tuner_mark mark_of(const struct tuner_window *window)
{
    if (!window->honoured)
        return FLY_TUNER_NOT_HONOURED;
    if (window->heat_share > spoiled_share)
        return FLY_TUNER_HOT;
    if (window->brake_share > spoiled_share)
        return FLY_TUNER_BRAKED;
    return isnan(window->energy_j) ? FLY_TUNER_NO_ENERGY : FLY_TUNER_VALID;
}

static enum fly_tuner_bound bound_of(const struct tuner_window *window, double limit_w)
{
    if (window->capped_share >= bound_share || window->least_felt >= bound_fraction * limit_w)
        return FLY_TUNER_BOUND;
    return isnan(window->capped_share) ? FLY_TUNER_BOUND_UNKNOWN : FLY_TUNER_UNBOUND;
}

static struct fly_tuner_point *find_point(struct fly_tuner *tuner, double limit_w)
{
    for (size_t i = 0; i < tuner->limit_count; i++) {
        if (tuner->points[i].limit_w == limit_w)
            return &tuner->points[i];
    }
    return &tuner->points[0];
}

/* What the limit on trial was measured to be, with this window; false when that is not complete. */
static bool take_visit(const struct fly_tuner *tuner, const struct tuner_window *window,
                       struct tuner_visit *out_visit)
{
    struct fly_power_point measured[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = fly_power_search_profile(tuner->search, measured, FLY_POWER_SEARCH_LIMITS_MAX);
    double steps = (double)tuner->times.count;

    for (size_t i = 0; i < count; i++) {
        double energy_j = measured[i].power_w * measured[i].time_s * steps;

        if (measured[i].limit_w != tuner->points[tuner->at].limit_w)
            continue;
        *out_visit = (struct tuner_visit){.steps = steps,
                                          .time_s = measured[i].time_s * steps,
                                          .energy_j = energy_j,
                                          .half_j = tuner_energy_error(tuner, window) * energy_j,
                                          .time_error = window->time_error};
        return true;
    }
    return false;
}

/* The steps since the last visit were its own, and its warm-up. */
static void note_cost(struct fly_tuner *tuner, const struct tuner_visit *visit)
{
    double steps = (double)(tuner->cost.steps - tuner->spent_steps);

    tuner->spent_s += visit->time_s / visit->steps * steps;
    tuner->spent_j += visit->energy_j / visit->steps * steps;
    tuner->spent_steps = tuner->cost.steps;
}

/* After a window of the search: what else can be spared? */
static void spare(struct fly_tuner *tuner, struct fly_power_search_action *action)
{
    bool enough = tuner->carbon.governor != NULL ? tuner_carbon_has_enough(tuner) : tuner_may_finish(tuner);

    if (enough && fly_power_search_finish(tuner->search, action) == 0)
        return;
    if (!tuner->capped && tuner->most_felt > 0.0 && action->set_limit &&
        tuner->most_felt < unfelt_fraction * action->limit_w)
        (void)fly_power_search_skip_warmup(tuner->search);
}

/* A GPU that stays hot or braked is no GPU to find a limit on; all ranks see the same window. */
static bool is_hopeless(struct fly_tuner *tuner, enum fly_tuner_mark mark)
{
    enum { SPOILED_MAX = 2 * FLY_POWER_SEARCH_TRIES };

    tuner->spoiled_windows =
        mark == FLY_TUNER_HOT || mark == FLY_TUNER_BRAKED ? tuner->spoiled_windows + 1 : 0;
    if (tuner->state != FLY_TUNER_SEARCHING || tuner->spoiled_windows < SPOILED_MAX)
        return false;
    tuner_fault(tuner, FLY_TUNER_NO_CHOICE, "%u windows on end were spoiled: a GPU is %s",
                tuner->spoiled_windows, fly_tuner_mark_name(mark));
    (void)all_go_on(tuner);
    return true;
}

/* Lets a window go on that says too little yet; whether it does. At an epoch's end the next one goes on. */
static bool grows(struct fly_tuner *tuner, const struct tuner_window *window,
                  struct fly_power_search_action *action)
{
    uint32_t steps = tuner_steps_missing(tuner, window);

    if (steps == 0 || fly_power_search_extend(tuner->search, steps, action) < 0)
        return false;
    tuner->parts.extra_steps += steps;
    return !action->close_window;
}

/* Takes a window of the search that counts: into the limit's point, or as a part of it. */
static void take_window(struct fly_tuner *tuner, const struct tuner_window *window,
                        struct fly_power_search_action *action)
{
    struct fly_tuner_point *point = &tuner->points[tuner->at];
    struct tuner_visit visit;

    point->bound = bound_of(window, point->limit_w);
    point->capped_share = window->capped_share;
    if (take_visit(tuner, window, &visit)) {
        note_cost(tuner, &visit);
        tuner_add_visit(tuner, tuner->at, &visit);
        tuner_window_forget(tuner);
        if (!tuner->looking)
            spare(tuner, action);
        return;
    }
    tuner->parts.energy_j += window->energy_j;
    tuner->parts.half_j2 += window->half_j * window->half_j;
    tuner->parts.time_s += window->time_s;
}

/* Looks at the window, tells the search, and takes its next action. */
static void measured(struct fly_tuner *tuner, struct fly_power_search_action *action)
{
    bool searching = tuner->state == FLY_TUNER_SEARCHING;
    struct tuner_window window;
    enum fly_tuner_mark mark;
    double limit_w = fly_power_search_limit_w(tuner->search);

    *action = (struct fly_power_search_action){0};
    if (!tuner_window_look(tuner, &window))
        return;
    tuner->at = (size_t)(find_point(tuner, limit_w) - tuner->points);
    mark = mark_of(&window);
    if (is_hopeless(tuner, mark)) {
        tuner->points[tuner->at].mark = mark;
        return;
    }
    if ((mark == FLY_TUNER_VALID || mark == FLY_TUNER_NO_ENERGY) && grows(tuner, &window, action))
        return;
    if (!tuner_window_end(tuner, &window))
        return;
    (void)fly_power_search_measured(tuner->search, mark == FLY_TUNER_VALID ? window.energy_j : NAN,
                                    window.time_s, action);
    if (mark != FLY_TUNER_VALID)
        tuner_window_forget(tuner);
    if (!searching) {
        if (mark == FLY_TUNER_VALID)
            (void)take_visit(tuner, &window, &tuner->check);
        return;
    }
    if (!tuner->looking)
        tuner->points[tuner->at].mark = mark == FLY_TUNER_VALID ? FLY_TUNER_NOT_MEASURED : mark;
    if (mark == FLY_TUNER_VALID)
        take_window(tuner, &window, action);
}

static bool has_drifted(const struct fly_tuner *tuner, double time_s)
{
    const struct fly_tuner_point *point = &tuner->points[tuner->chosen];

    return point->mark == FLY_TUNER_VALID && fabs(time_s / point->time_s - 1.0) > drift_fraction &&
           tuner->since_search >= tuner->options.remeasure_distance_steps;
}

static void back_off(struct fly_tuner *tuner)
{
    size_t next = tuner_next_higher(tuner, tuner->chosen);

    tuner->broken_checks = 0;
    tuner->report.backoffs++;
    if (tuner->noise.time > 0.0)
        (void)tuner_choose(tuner, tuner->chosen, &next);
    /* Rather none at all than a fourth that does not keep it either. */
    tuner->chosen = tuner->report.backoffs > FLY_TUNER_BACKOFFS_MAX ? 0 : next;
    begin_check(tuner);
}

/*
 * Whether the chosen limit keeps its promise. The first check is one more window of
 * it; where windows differ by more than their steps explain, all that there are of it count, and
 * the bound is to be kept with what is uncertain to spare. A check later on only sees
 * whether it is clearly broken, which once may be chance.
 */
static bool is_promise_kept(struct fly_tuner *tuner, double time_s)
{
    if (tuner->confirming && tuner->check.steps > 0.0) {
        tuner_add_visit(tuner, tuner->chosen, &tuner->check);
        if (tuner->noise.time > 0.0) {
            tuner->broken_checks++;
            return tuner_keeps_bound(tuner, tuner->chosen);
        }
    }
    return tuner_keeps_promise(tuner, time_s, tuner->check.time_error);
}

/* The step time under the chosen limit is known, or could not be. */
static void finish_check(struct fly_tuner *tuner)
{
    struct fly_power_point checked;
    char text[TUNER_SETTING_MAX];
    double reference_s = tuner->points[0].mark == FLY_TUNER_VALID ? tuner->points[0].time_s : NAN;

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (fly_power_search_profile(tuner->search, &checked, 1) == 0) {
        if (!tuner->honoured)
            tuner_fault(tuner, FLY_TUNER_SET_FAILED, "the %s was set, and reads back as %g",
                        tuner_setting_text(tuner, tuner->points[tuner->chosen].limit_w, text),
                        tuner->standing_w);
        if (all_go_on(tuner))
            settle(tuner);
        return;
    }
    tuner->report.step_time_s = checked.time_s;
    tuner->report.slowdown = checked.time_s / reference_s;
    if (has_drifted(tuner, checked.time_s) && tuner_carbon_may_search(tuner, checked.time_s)) {
        begin_search(tuner);
    } else if (tuner->carbon.governor != NULL) {
        settle(tuner); /* the bound is the plan's */
    } else if (is_promise_kept(tuner, checked.time_s) || tuner->chosen == 0) {
        tuner->broken_checks = 0;
        settle(tuner);
    } else if (++tuner->broken_checks < 2) {
        begin_check(tuner); /* once may be chance */
    } else {
        back_off(tuner);
    }
}

static void carry_out(struct fly_tuner *tuner, struct fly_power_search_action action)
{
    while (action.close_window) {
        measured(tuner, &action);
        if (tuner->state == FLY_TUNER_STOPPED)
            return;
    }
    if (action.set_limit && fly_power_search_state(tuner->search) == FLY_POWER_SEARCH_DONE) {
        if (tuner->state == FLY_TUNER_SEARCHING)
            finish_search(tuner);
        else
            finish_check(tuner);
        return;
    }
    if (action.set_limit && !(tuner->state == FLY_TUNER_CHECKING && tuner->standing_w == action.limit_w))
        tuner_turn(tuner, action.limit_w);
    if (action.open_window)
        tuner_window_open(tuner);
}

/* With a saved profile, the search may be over before it begins. */
static bool is_decided(struct fly_tuner *tuner, struct fly_power_search_action *action)
{
    return fly_power_search_state(tuner->search) == FLY_POWER_SEARCH_READY && tuner->report.reused &&
           tuner_may_finish(tuner) && fly_power_search_finish(tuner->search, action) == 0;
}

static int step(struct fly_tuner *tuner)
{
    struct fly_power_search_action action = {0};
    bool searching;

    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    step_writer_write(&tuner->steps, "step");
    if (tuner->state == FLY_TUNER_STOPPED)
        return 0;
    if (tuner->carbon.governor != NULL && tuner_carbon_step(tuner))
        return 0;
    if (tuner->state == FLY_TUNER_SETTLED) {
        tuner->since_search += tuner->options.check_every_steps;
        begin_check(tuner);
    }
    if (tuner->state == FLY_TUNER_STOPPED)
        return 0;
    tuner_window_step(tuner);
    searching = tuner->state == FLY_TUNER_SEARCHING;
    if (searching)
        tuner_cost_open(tuner);
    else
        tuner->since_search++;
    if (!is_decided(tuner, &action))
        (void)fly_power_search_step_begin(tuner->search, &action);
    carry_out(tuner, action);
    tuner->cost.steps += tuner->state == FLY_TUNER_SEARCHING;
    return 0;
}

int fly_tuner_step_begin(struct fly_tuner *tuner)
{
    if (tuner->quiet_steps > 0) {
        tuner->quiet_steps--;
        return 0;
    }
    return step(tuner);
}

int fly_tuner_epoch_begin(struct fly_tuner *tuner)
{
    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    step_writer_write(&tuner->steps, "epoch %llu", (unsigned long long)++tuner->epochs_reported);
    return 0;
}

int fly_tuner_epoch_end(struct fly_tuner *tuner)
{
    struct fly_power_search_action action = {0};

    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    step_writer_write(&tuner->steps, "epoch end");
    tuner_carbon_epoch_end(tuner);
    if (tuner->state == FLY_TUNER_STOPPED)
        return 0;
    if (tuner->state == FLY_TUNER_SETTLED) {
        (void)tuner_check_standing(tuner);
        return 0;
    }
    tuner_window_step(tuner);
    (void)fly_power_search_epoch_end(tuner->search, &action);
    carry_out(tuner, action);
    tuner_cost_pause(tuner);
    return 0;
}

enum fly_tuner_state fly_tuner_state(const struct fly_tuner *tuner)
{
    return tuner->state;
}

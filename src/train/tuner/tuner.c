/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks, and the changes of state: search, check, settled. */
#include <math.h>

#include "base/thread/fork_guard.h"
#include "train/tuner/tuner_choice.h"
#include "train/tuner/tuner_private.h"

/* What was measured besides the points belongs to another knob, or is out of date. */
static void forget_visits(struct fly_tuner *tuner)
{
    for (size_t i = 0; i < FLY_POWER_SEARCH_LIMITS_MAX; i++) {
        tuner->visits[i] = (struct tuner_visits){0};
        tuner->felt[i] = NAN;
        tuner->scatter[i] = 0.0;
        tuner->enforced_most_w[i] = INFINITY;
    }
    tuner->noise = (struct tuner_noise){0};
}

/* Searches with the knob on trial; `reuse`: what was measured before. */
static void begin_search_with(struct fly_tuner *tuner, bool reuse)
{
    fly_power_search_free(tuner->search);
    tuner->search = NULL;
    tuner->state = FLY_TUNER_SEARCHING;
    tuner->report.searches++;
    tuner->report.backoffs = 0;
    tuner->report.reused = false;
    tuner->report.looks = 0;
    tuner->report.noise = NAN;
    forget_visits(tuner);
    tuner->windows = (struct tuner_windows){0};
    tuner->spent_s = tuner->spent_j = 0.0;
    tuner->spent_steps = 0;
    tuner->at = 0;
    tuner->cost = (struct tuner_cost){.known = true};
    tuner->failed_looks = 0;
    tuner_window_forget(tuner);
    for (size_t i = 0; i < tuner->limit_count; i++) {
        tuner->points[i].mark = FLY_TUNER_NOT_MEASURED;
        tuner->saved[i] = false;
    }
    if (reuse)
        tuner_take_saved(tuner);
    if (tuner_search_all(tuner, NULL) < 0)
        tuner_fault(tuner, FLY_TUNER_NO_MEMORY, "no memory for another search");
    (void)tuner_all_go_on(tuner);
}

static void begin_search(struct fly_tuner *tuner)
{
    tuner_first_knob(tuner);
    begin_search_with(tuner, false);
}

/* After a turn to this limit: where that is refused, begins with the other knob. Collective. */
static bool gives_way(struct fly_tuner *tuner, double limit_w)
{
    bool was_second = tuner->is_second;

    if (!tuner_gives_way(tuner, limit_w))
        return false;
    tuner_cost_pause(tuner);
    tuner_window_drop(tuner);
    if (was_second) {
        forget_visits(tuner);
        tuner_begin_check(tuner);
    } else {
        begin_search_with(tuner, true);
    }
    return true;
}

static void begin_look(struct fly_tuner *tuner, size_t place)
{
    tuner->looking = true;
    tuner->report.looks++;
    tuner_search_one(tuner, place, tuner_look_steps(tuner));
}

/* After a visit of the race: begins the next one; false when the race has settled. */
static bool race_on(struct fly_tuner *tuner)
{
    struct fly_power_point measured;
    uint32_t steps;
    size_t place;

    if (tuner->racing && tuner->looking && fly_power_search_profile(tuner->search, &measured, 1) == 0)
        tuner->failed_looks++;
    tuner->racing = true;
    if (!tuner_race_next(tuner, &place, &steps))
        return false;
    tuner->looking = tuner->points[place].mark == FLY_TUNER_VALID;
    tuner->report.looks += tuner->looking;
    tuner_search_one(tuner, place, steps);
    return true;
}

/* Measures what the plan says next; false when the profile is enough. */
static bool plan_on(struct fly_tuner *tuner)
{
    size_t place;

    tuner->racing = true;
    if (!tuner_plan_next(tuner, &place))
        return false;
    tuner->plan.left--;
    tuner_search_one(tuner, place, tuner->options.profile_steps);
    return true;
}

static void settle(struct fly_tuner *tuner)
{
    if (tuner_next_knob(tuner)) {
        begin_search_with(tuner, true);
        return;
    }
    tuner->state = FLY_TUNER_SETTLED;
    tuner->confirming = false;
    tuner_carbon_settle(tuner);
}

/* Adds the cost of the search that has ended to the report. Joins the ranks. */
static void close_cost(struct fly_tuner *tuner)
{
    const struct fly_tuner_point *chosen = &tuner->points[tuner->chosen];
    struct tuner_cost *cost = &tuner->cost;
    struct fly_tuner_report *report = &tuner->report;
    double steps = (double)cost->steps, unknown, sums[1], maxima[2];

    tuner_cost_pause(tuner);
    unknown = !cost->known || isnan(cost->energy_j);
    sums[0] = unknown > 0.0 ? 0.0 : cost->energy_j;
    maxima[0] = cost->time_s;
    maxima[1] = unknown;
    if (!tuner_exchange(tuner, sums, 1, maxima, 2))
        return;
    if (maxima[1] > 0.0)
        sums[0] = NAN;
    report->search_steps += cost->steps;
    report->search_energy_j += sums[0];
    report->search_time_s += maxima[0];
    if (tuner->windows.pauses > 0) { /* they would have been the same at any limit */
        steps = (double)tuner->spent_steps;
        maxima[0] = tuner->spent_s;
        sums[0] = tuner->spent_j;
    }
    report->extra_energy_j += sums[0] - steps * chosen->power_w * chosen->time_s;
    report->extra_time_s += maxima[0] - steps * chosen->time_s;
}

/* A whole profile chooses nothing: its ceilings are tried under the highest limit. Returns whether they are.
 */
static bool goes_on_with_ceilings(struct fly_tuner *tuner)
{
    if (!tuner->every_limit || !tuner_has_next_knob(tuner))
        return false;
    tuner->chosen = 0;
    tuner_turn(tuner, tuner->points[0].limit_w);
    if (gives_way(tuner, tuner->points[0].limit_w))
        return true;
    close_cost(tuner);
    if (tuner->reason == FLY_TUNER_GOES_ON && tuner_next_knob(tuner))
        begin_search_with(tuner, false);
    return true;
}

/* Every limit is measured or left out: chooses one, and checks whether it keeps its promise. */
static void finish_search(struct fly_tuner *tuner)
{
    bool measured = false;
    size_t again;

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (tuner->races && race_on(tuner))
        return;
    if (tuner_is_planned(tuner) && plan_on(tuner))
        return;
    if (!tuner->races && !tuner_is_planned(tuner) && tuner_next_look(tuner, &again)) {
        begin_look(tuner, again);
        return;
    }
    tuner->failed_looks = 0;
    if (goes_on_with_ceilings(tuner))
        return;
    if (!tuner_choose(tuner, &tuner->chosen)) {
        enum fly_tuner_mark mark = tuner->points[0].mark;
        char text[TUNER_SETTING_MAX];

        tuner_fault(tuner, FLY_TUNER_NO_CHOICE, "no valid measurement to choose by: the %s is marked '%s'",
                    tuner_setting_text(tuner, tuner->points[0].limit_w, text), fly_tuner_mark_name(mark));
        (void)tuner_all_go_on(tuner);
        return;
    }
    for (size_t i = 0; i < tuner->limit_count; i++)
        measured |= tuner->points[i].mark == FLY_TUNER_VALID && !tuner->saved[i];
    tuner->report.ties = tuner_ties(tuner, tuner->chosen);
    tuner_turn(tuner, tuner->points[tuner->chosen].limit_w);
    if (gives_way(tuner, tuner->points[tuner->chosen].limit_w))
        return;
    close_cost(tuner);
    /* A saved profile may be of any age: if it does not fit, measuring begins at once. */
    tuner->remeasure_from = tuner->count.begun + (measured ? tuner->options.remeasure_distance_steps : 0);
    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (measured)
        tuner_save(tuner);
    tuner_carbon_profile(tuner);
    if (tuner->state == FLY_TUNER_STOPPED)
        return;
    tuner->confirming = true;
    tuner->searched_at = tuner->count.begun;
    tuner_begin_check(tuner);
}

/* A new choice did not pass its check: the race goes on, if it has steps left. Returns whether it does. */
static bool resume(struct fly_tuner *tuner)
{
    uint32_t steps;
    size_t place;

    if (!tuner_race_resume(tuner, &place, &steps))
        return false;
    tuner_search_one(tuner, place, steps);
    return true;
}

/* A look has ended: another limit is chosen by it, or the chosen one is set again. */
static void finish_look(struct fly_tuner *tuner)
{
    bool changed = tuner_race_end_look(tuner);

    if (tuner->confirming && resume(tuner))
        return;
    tuner_turn(tuner, tuner->points[tuner->chosen].limit_w);
    if (!tuner_all_go_on(tuner))
        return;
    if (!changed && !tuner->confirming) {
        settle(tuner);
        return;
    }
    tuner_save(tuner);
    tuner->confirming = true;
    tuner_begin_check(tuner);
}

/* The chosen limit has passed its check. */
static void pass_check(struct fly_tuner *tuner)
{
    uint32_t steps;
    size_t place;

    tuner->broken_checks = 0;
    if (tuner->check.steps > 0.0)
        tuner_race_note_level(tuner, tuner->report.step_time_s);
    if (!tuner->confirming && tuner_race_look(tuner, &place, &steps))
        tuner_search_one(tuner, place, steps);
    else
        settle(tuner);
}

/* The step time under the chosen limit is known, or cannot be known. */
static void finish_check(struct fly_tuner *tuner)
{
    struct fly_power_point checked;
    char text[TUNER_SETTING_MAX], now[TUNER_SETTING_MAX];
    const struct fly_tuner_point *highest = tuner->is_second ? &tuner->other.points[0] : &tuner->points[0];
    double reference_s = highest->mark == FLY_TUNER_VALID ? highest->time_s : NAN;

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (tuner->looking) {
        finish_look(tuner);
        return;
    }
    if (fly_power_search_profile(tuner->search, &checked, 1) == 0) {
        if (!tuner->honoured)
            tuner_fault(tuner, FLY_TUNER_SET_FAILED, "the %s was set, and reads back as %s",
                        tuner_setting_text(tuner, tuner->points[tuner->chosen].limit_w, text),
                        tuner_value_text(tuner, tuner->standing_w, now));
        if (tuner_all_go_on(tuner))
            settle(tuner);
        return;
    }
    tuner->report.step_time_s = checked.time_s;
    tuner->report.slowdown = checked.time_s / reference_s;
    if (tuner_has_drifted(tuner, checked.time_s) && tuner_carbon_may_search(tuner, checked.time_s)) {
        begin_search(tuner);
    } else if (tuner->carbon.governor != NULL) {
        settle(tuner); /* the plan takes care of the bound */
    } else if (tuner_is_promise_kept(tuner, checked.time_s) || tuner->chosen == 0) {
        pass_check(tuner);
    } else if (tuner->confirming && resume(tuner)) {
        tuner->broken_checks = 0;
    } else if (++tuner->broken_checks < 2) {
        tuner_begin_check(tuner); /* once may be chance: check again */
    } else {
        tuner_back_off(tuner);
    }
}

static void carry_out(struct fly_tuner *tuner, struct fly_power_search_action action)
{
    while (action.close_window) {
        tuner_measured(tuner, &action);
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
    if (action.set_limit && gives_way(tuner, action.limit_w))
        return;
    if (action.open_window)
        tuner_window_open(tuner);
}

/* With a saved profile, the search may be over before it begins. */
static bool is_decided(struct fly_tuner *tuner, struct fly_power_search_action *action)
{
    uint32_t steps;
    size_t place;

    return fly_power_search_state(tuner->search) == FLY_POWER_SEARCH_READY && !tuner->racing &&
           tuner->report.reused &&
           (tuner->races              ? !tuner_race_next(tuner, &place, &steps)
            : tuner_is_planned(tuner) ? !tuner_plan_next(tuner, &place)
                                      : tuner_may_finish(tuner)) &&
           fly_power_search_finish(tuner->search, action) == 0;
}

/* Takes the step's begin as the pure search has it. */
static void step_on(struct fly_tuner *tuner)
{
    struct fly_power_search_action action = {0};

    if (!is_decided(tuner, &action))
        (void)fly_power_search_step_begin(tuner->search, &action);
    /* The first limit is about to be set: from here on the race or the plan says which. */
    if (action.set_limit && (tuner->races || tuner_is_planned(tuner)) && !tuner->racing &&
        tuner->state == FLY_TUNER_SEARCHING)
        finish_search(tuner);
    else
        carry_out(tuner, action);
    /* What was begun at this step needs no step in between. */
    while (tuner->racing && (tuner->state == FLY_TUNER_SEARCHING || tuner->state == FLY_TUNER_CHECKING) &&
           fly_power_search_state(tuner->search) == FLY_POWER_SEARCH_READY) {
        (void)fly_power_search_step_begin(tuner->search, &action);
        carry_out(tuner, action);
    }
}

/*
 * Turns again what was given back while no step came; false when that fails, which ends tuning. Other ranks
 * may have noticed nothing: what they must know they learn with the next window.
 */
static bool wake(struct fly_tuner *tuner)
{
    struct fly_error error = {.text = ""};
    double gap_s;

    if (idle_turner_wake(tuner->idle, &gap_s, &error) < 0) {
        tuner_fault(tuner, FLY_TUNER_NO_KNOB, "%s", error.text);
        return false;
    }
    if (tuner->turned)
        tuner->start_limit_w = idle_turner_start(tuner->options.turner_data);
    tuner->interrupted |= tuner->window_open;
    if (tuner->cost.open) {
        tuner->cost.known = false; /* the energy of the gap is in it */
        tuner->cost.time_s -= gap_s;
    }
    return true;
}

/* Whether the first limit still waits for work on the GPUs. The search lets some steps pass anyhow. */
static bool awaits_work(struct fly_tuner *tuner)
{
    struct tuner_work *work = &tuner->work;
    uint32_t searches = tuner->report.searches;

    if (tuner->state != FLY_TUNER_SEARCHING || work->state == TUNER_WORK_FOUND)
        return false;
    if (tuner_ask_work(tuner) != TUNER_WORK_FOUND) {
        work->held = tuner->count.begun > tuner->options.wait_steps || tuner->report.reused;
        return work->held;
    }
    if (work->held || work->others) {
        tuner_cost_pause(tuner);
        tuner->cost = (struct tuner_cost){.known = true};
    }
    if (work->others)
        begin_search_with(tuner, true);
    tuner->report.searches = searches;
    return tuner->state == FLY_TUNER_STOPPED;
}

/* A GPU that was left alone has work by now: begins anew with it. */
static void take_late(struct fly_tuner *tuner)
{
    tuner_cost_pause(tuner);
    tuner_window_drop(tuner);
    tuner_first_knob(tuner);
    tuner_turn_back(tuner);
    tuner->work.state = TUNER_WORK_NOT_ASKED;
    tuner->work.late = false;
    tuner->work.look_at = 0;
    tuner_rest(tuner, 0);
    begin_search_with(tuner, true);
}

/* A separate call, so that the quiet hook need not save the registers that this uses. */
__attribute__((noinline)) static int step(struct fly_tuner *tuner)
{
    bool was_idle, was_quiet;

    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    idle_turner_look(tuner->idle);
    was_idle = idle_turner_is_idle(tuner->idle) && tuner->reason == FLY_TUNER_GOES_ON && wake(tuner);
    was_quiet = tuner->count.begun < tuner->quiet_until;
    tuner_count_step(tuner);
    idle_turner_look(tuner->idle);
    step_writer_write(&tuner->steps, "step");
    if (tuner->state == FLY_TUNER_STOPPED || (was_idle && was_quiet))
        return 0;
    if (tuner->carbon.governor != NULL && tuner_carbon_step(tuner))
        return 0;
    if (tuner->state == FLY_TUNER_SETTLED)
        tuner_begin_check(tuner);
    if (tuner->state == FLY_TUNER_STOPPED || awaits_work(tuner))
        return 0;
    tuner_window_step(tuner);
    if (tuner->state == FLY_TUNER_SEARCHING)
        tuner_cost_open(tuner);
    step_on(tuner);
    if (tuner->work.late && tuner->state != FLY_TUNER_STOPPED)
        take_late(tuner);
    tuner->cost.steps += tuner->state == FLY_TUNER_SEARCHING;
    return 0;
}

int fly_tuner_step_begin(struct fly_tuner *tuner)
{
    if (tuner->count.begun < tuner->quiet_until && !idle_turner_is_idle(tuner->idle)) {
        step_count_step(&tuner->count);
        return 0;
    }
    return step(tuner);
}

int fly_tuner_give_back(struct fly_tuner *tuner)
{
    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    idle_turner_give_back(tuner->idle);
    return 0;
}

int fly_tuner_epoch_begin(struct fly_tuner *tuner)
{
    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    idle_turner_look(tuner->idle);
    step_writer_write(&tuner->steps, "epoch %llu", (unsigned long long)++tuner->epochs_reported);
    return 0;
}

int fly_tuner_epoch_end(struct fly_tuner *tuner)
{
    struct fly_power_search_action action = {0};

    if (tuner->forks != fork_generation())
        return FLY_ESTATE;
    step_writer_write(&tuner->steps, "epoch end");
    idle_turner_look(tuner->idle);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the window of the limit on trial: whether it counts, goes on, or makes other windows unnecessary. */
#include <math.h>

#include "policy/power_search_done.h"
#include "train/tuner/tuner_choice.h"
#include "train/tuner/tuner_private.h"

/* Shares of a window beyond which heat or an outside brake spoils it. */
static const double spoiled_share = 0.02;
/*
 * A limit holds a GPU down when the driver names it as the cause for this share of the time, or the GPU draws
 * nearly all of it. A ceiling does when the clock is close to it.
 */
static const double bound_share = 0.5, bound_fraction = 0.9;
/* No GPU that draws less than this fraction of a limit is affected by it. */
static const double unfelt_fraction = 0.8;

static enum fly_tuner_mark mark_of(const struct tuner_window *window)
{
    if (!window->honoured || window->interrupted)
        return FLY_TUNER_NOT_HONOURED;
    if (window->heat_share > spoiled_share)
        return FLY_TUNER_HOT;
    if (window->brake_share > spoiled_share)
        return FLY_TUNER_BRAKED;
    return isnan(window->energy_j) ? FLY_TUNER_NO_ENERGY : FLY_TUNER_VALID;
}

/* What the boards enforce binds, also where more was asked for. */
static enum fly_tuner_bound bound_of(const struct tuner_window *window, double limit_w)
{
    if (window->capped_share >= bound_share ||
        window->least_felt >= bound_fraction * fmin(limit_w, window->enforced_w))
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

/* Whether all windows of the limit on trial are there. */
static bool is_complete(const struct fly_tuner *tuner)
{
    struct fly_power_point measured[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = fly_power_search_profile(tuner->search, measured, FLY_POWER_SEARCH_LIMITS_MAX);

    for (size_t i = 0; i < count; i++) {
        if (measured[i].limit_w == tuner->points[tuner->at].limit_w)
            return true;
    }
    return false;
}

/* Notes the cost of a visit: the steps since the last visit were its own and its warm-up. */
static void note_cost(struct fly_tuner *tuner, const struct tuner_visit *visit)
{
    double steps = (double)(tuner->cost.steps - tuner->spent_steps);

    tuner->spent_s += visit->time_s / visit->steps * steps;
    tuner->spent_j += visit->energy_j / visit->steps * steps;
    tuner->spent_steps = tuner->cost.steps;
}

/* After a window of the search: decides what else need not be measured. */
static void spare(struct fly_tuner *tuner, struct fly_power_search_action *action)
{
    bool enough = tuner->carbon.governor != NULL ? tuner_carbon_has_enough(tuner) : tuner_may_finish(tuner);

    if (enough && fly_power_search_finish(tuner->search, action) == 0)
        return;
    if (!tuner->capped && tuner->most_felt > 0.0 && action->set_limit &&
        tuner->most_felt < unfelt_fraction * action->limit_w)
        (void)fly_power_search_skip_warmup(tuner->search);
}

/* Stops when a GPU stays hot or braked: no limit can be found on it. All ranks see the same window. */
static bool is_hopeless(struct fly_tuner *tuner, enum fly_tuner_mark mark)
{
    enum { SPOILED_MAX = 2 * FLY_POWER_SEARCH_TRIES };

    tuner->spoiled_windows =
        mark == FLY_TUNER_HOT || mark == FLY_TUNER_BRAKED ? tuner->spoiled_windows + 1 : 0;
    if (tuner->state != FLY_TUNER_SEARCHING || tuner->spoiled_windows < SPOILED_MAX)
        return false;
    tuner_fault(tuner, FLY_TUNER_NO_CHOICE, "%u windows on end were spoiled: a GPU is %s",
                tuner->spoiled_windows, fly_tuner_mark_name(mark));
    (void)tuner_all_go_on(tuner);
    return true;
}

/*
 * Lets a window go on that says too little yet; returns whether it does. After an epoch's end the next window
 * goes on.
 */
static bool grows(struct fly_tuner *tuner, const struct tuner_window *window,
                  struct fly_power_search_action *action)
{
    bool anew = window->interrupted || tuner_is_unsettled(tuner);
    uint32_t steps = anew ? tuner->window_steps : tuner_steps_missing(tuner, window);

    if (steps == 0 || fly_power_search_extend(tuner->search, steps, action) < 0)
        return false;
    tuner->parts.extra_steps += steps;
    if (anew && !action->close_window) {
        tuner_window_drop(tuner);
        tuner_window_forget(tuner);
        tuner_window_open(tuner);
    }
    return !action->close_window;
}

/* Keeps a window that an epoch's end cut, until the next epoch. */
static void add_part(struct fly_tuner *tuner, const struct tuner_window *window)
{
    tuner->parts.energy_j += window->energy_j;
    tuner->parts.half_j2 += window->half_j * window->half_j;
    tuner->parts.time_s += window->time_s;
}

static void note_bound(struct fly_tuner *tuner, const struct tuner_window *window)
{
    struct fly_tuner_point *point = &tuner->points[tuner->at];

    point->bound = bound_of(window, point->limit_w);
    point->capped_share = window->capped_share;
    tuner->felt[tuner->at] = isfinite(window->most_felt) ? window->most_felt : NAN;
}

/*
 * Whether the limit is that of another point by another name: the boards enforced no more than it under a
 * higher one.
 */
static bool is_other_name(const struct fly_tuner *tuner, size_t place)
{
    for (size_t i = 0; i < place; i++) {
        double most_w = tuner->enforced_most_w[i];

        if (!tuner_is_same(tuner, most_w, tuner->points[i].limit_w) && most_w < tuner->points[i].limit_w &&
            (tuner->points[place].limit_w > most_w ||
             tuner_is_same(tuner, most_w, tuner->points[place].limit_w)))
            return true;
    }
    return false;
}

/* Leaves out the limits above what the boards enforce now under the limit on trial. */
static void note_enforced(struct fly_tuner *tuner, const struct tuner_window *window)
{
    if (tuner->options.knob != FLY_TUNER_POWER_LIMIT)
        return;
    tuner->enforced_w[tuner->at] = window->enforced_w;
    tuner->enforced_most_w[tuner->at] = window->enforced_most_w;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        struct fly_tuner_point *point = &tuner->points[i];
        bool other_name = is_other_name(tuner, i);

        if (point->mark == FLY_TUNER_NOT_MEASURED && i != tuner->at && other_name) {
            point->mark = FLY_TUNER_ENFORCED_LOWER;
            tuner->enforced_w[i] = window->enforced_w;
            power_search_spare(tuner->search, point->limit_w);
        } else if (point->mark == FLY_TUNER_ENFORCED_LOWER && !other_name) {
            point->mark = FLY_TUNER_NOT_MEASURED;
        }
    }
}

/* Takes a window of the search that counts: into the limit's point, or as a part of it. */
static void take_window(struct fly_tuner *tuner, const struct tuner_window *window,
                        struct fly_power_search_action *action)
{
    if (is_complete(tuner)) {
        struct tuner_visit visit = tuner_visit_so_far(tuner, window);

        note_cost(tuner, &visit);
        tuner_add_visit(tuner, tuner->at, &visit);
        tuner_window_forget(tuner);
        if (!tuner->looking && !tuner->races && !tuner_is_planned(tuner))
            spare(tuner, action);
        return;
    }
    add_part(tuner, window);
}

/* The same when settled: for the check, or for a look. */
static void take_check(struct fly_tuner *tuner, const struct tuner_window *window)
{
    if (is_complete(tuner)) {
        tuner->check = tuner_visit_so_far(tuner, window);
        tuner_window_forget(tuner);
        return;
    }
    add_part(tuner, window);
}

void tuner_keep_unfinished(struct fly_tuner *tuner)
{
    enum { STEPS_LEAST = 10 };
    const struct tuner_parts *parts = &tuner->parts;
    struct tuner_visit visit = {.steps = (double)tuner->times.count,
                                .time_s = parts->time_s,
                                .energy_j = parts->energy_j,
                                .half_j = sqrt(parts->half_j2),
                                .time_error = tuner_times_error(&tuner->times)};

    if (tuner->state != FLY_TUNER_SEARCHING || tuner->looking || tuner->window_open ||
        tuner->points[tuner->at].mark != FLY_TUNER_NOT_MEASURED || tuner->times.count < STEPS_LEAST ||
        !(visit.half_j <= tuner->options.energy_tolerance * visit.energy_j))
        return;
    tuner_add_visit(tuner, tuner->at, &visit);
    tuner_window_forget(tuner);
}

/* Takes the window's figures, tells the search, and gets its next action. */
void tuner_measured(struct fly_tuner *tuner, struct fly_power_search_action *action)
{
    bool searching = tuner->state == FLY_TUNER_SEARCHING;
    struct tuner_window window;
    enum fly_tuner_mark mark;
    double limit_w = fly_power_search_limit_w(tuner->search);

    *action = (struct fly_power_search_action){0};
    if (!tuner_window_look(tuner, &window))
        return;
    tuner->at = (size_t)(find_point(tuner, limit_w) - tuner->points);
    tuner->scatter[tuner->at] = window.scatter;
    mark = mark_of(&window);
    if (is_hopeless(tuner, mark)) {
        tuner->points[tuner->at].mark = mark;
        return;
    }
    if ((window.interrupted || mark == FLY_TUNER_VALID || mark == FLY_TUNER_NO_ENERGY) &&
        grows(tuner, &window, action))
        return;
    if (!tuner_window_end(tuner, &window))
        return;
    if (mark == FLY_TUNER_VALID && (searching || tuner->looking))
        note_enforced(tuner, &window);
    (void)fly_power_search_measured(tuner->search, mark == FLY_TUNER_VALID ? window.energy_j : NAN,
                                    window.time_s, action);
    if (mark != FLY_TUNER_VALID)
        tuner_window_forget(tuner);
    if (mark == FLY_TUNER_VALID && (searching || tuner->looking))
        note_bound(tuner, &window);
    if (!searching) {
        if (mark == FLY_TUNER_VALID)
            take_check(tuner, &window);
        return;
    }
    if (!tuner->looking)
        tuner->points[tuner->at].mark = mark == FLY_TUNER_VALID ? FLY_TUNER_NOT_MEASURED : mark;
    if (mark == FLY_TUNER_VALID)
        take_window(tuner, &window, action);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/power_search.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/power_selector.h>

#include "base/error.h"
#include "policy/power_search_done.h"

enum limit_state { LIMIT_OPEN, LIMIT_MEASURED, LIMIT_LEFT_OUT };

/* One power limit and what has been measured under it. */
struct limit {
    double limit_w;
    enum limit_state state;
    struct fly_power_point point; /* per step, with LIMIT_MEASURED */
    unsigned failures;            /* windows that could not be measured */
    double energy_j;              /* of the part of its window that was closed */
    double time_s;
    uint32_t steps;
    uint32_t wanted_steps;
};

struct fly_power_search {
    enum fly_power_search_state state;
    struct fly_objective objective;
    double max_power_w;
    uint32_t warmup_steps;
    uint32_t countdown;    /* steps until READY or WARMUP ends */
    uint32_t window_steps; /* begun since the window opened */
    bool window_open;
    bool owed;      /* a measurement was requested and has not come yet */
    bool in_step;   /* it was requested at the begin of a step, not at the end of an epoch */
    bool resume;    /* open the window at the next step */
    size_t at;      /* index of the limit on trial */
    double limit_w; /* requested of the GPUs */
    size_t limit_count;
    struct limit limits[]; /* highest first */
};

static int compare_limits(const void *left, const void *right)
{
    const struct limit *a = left, *b = right;

    return (a->limit_w < b->limit_w) - (a->limit_w > b->limit_w);
}

static bool positive(double value)
{
    return isfinite(value) && value > 0.0;
}

static int check_options(const struct fly_power_search_options *options, struct fly_error *out_error)
{
    if (options->size < sizeof *options)
        return error_set(out_error, FLY_EUSAGE, "power search: options.size is %zu; set it to sizeof options",
                         options->size);
    if (options->limit_count < 1 || options->limit_count > FLY_POWER_SEARCH_LIMITS_MAX)
        return error_set(out_error, FLY_EUSAGE, "power search: %zu power limits; expected 1 to %d",
                         options->limit_count, FLY_POWER_SEARCH_LIMITS_MAX);
    if (options->profile_steps < 1)
        return error_set(out_error, FLY_EUSAGE, "power search: profile_steps is 0; expected at least 1");
    return 0;
}

static int take_limits(struct fly_power_search *search, const struct fly_power_search_options *options,
                       struct fly_error *out_error)
{
    search->limit_count = options->limit_count;
    for (size_t i = 0; i < options->limit_count; i++) {
        if (!positive(options->limits_w[i]))
            return error_set(out_error, FLY_EUSAGE, "power search: limit %g W; expected a number above 0",
                             options->limits_w[i]);
        search->limits[i].limit_w = options->limits_w[i];
        search->limits[i].wanted_steps = options->profile_steps;
    }
    qsort(search->limits, search->limit_count, sizeof search->limits[0], compare_limits);
    for (size_t i = 1; i < search->limit_count; i++) {
        if (search->limits[i].limit_w == search->limits[i - 1].limit_w)
            return error_set(out_error, FLY_EUSAGE, "power search: limit %g W stands there twice",
                             search->limits[i].limit_w);
    }
    return 0;
}

static struct limit *find_limit(struct fly_power_search *search, double limit_w)
{
    for (size_t i = 0; i < search->limit_count; i++) {
        if (search->limits[i].limit_w == limit_w)
            return &search->limits[i];
    }
    return NULL;
}

static int take_profile(struct fly_power_search *search, const struct fly_power_search_options *options,
                        struct fly_error *out_error)
{
    for (size_t i = 0; i < options->profile_count; i++) {
        const struct fly_power_point *point = &options->profile[i];
        struct limit *limit = find_limit(search, point->limit_w);

        if (limit == NULL || limit->state == LIMIT_MEASURED)
            return error_set(
                out_error, FLY_EDATA,
                "power search: the saved profile's point %zu is for %g W, which %s; measure a new "
                "profile on this GPU",
                i, point->limit_w, limit == NULL ? "is no limit to try here" : "stands there twice");
        if (!positive(point->power_w) || !positive(point->time_s))
            return error_set(
                out_error, FLY_EDATA,
                "power search: the saved profile says %g W and %g s at %g W; expected numbers above "
                "0, so measure it anew",
                point->power_w, point->time_s, point->limit_w);
        limit->point = *point;
        limit->state = LIMIT_MEASURED;
    }
    return 0;
}

/* Moves to the next limit that still has to be measured; returns whether there is one. */
static bool next_open_limit(struct fly_power_search *search)
{
    while (search->at < search->limit_count && search->limits[search->at].state != LIMIT_OPEN)
        search->at++;
    return search->at < search->limit_count;
}

size_t fly_power_search_profile(const struct fly_power_search *search, struct fly_power_point *out_points,
                                size_t capacity)
{
    size_t count = 0;

    for (size_t i = 0; i < search->limit_count; i++) {
        if (search->limits[i].state != LIMIT_MEASURED)
            continue;
        if (count < capacity)
            out_points[count] = search->limits[i].point;
        count++;
    }
    return count;
}

/* Makes the choice, once every limit is measured or left out. */
static void settle(struct fly_power_search *search)
{
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t count = fly_power_search_profile(search, points, FLY_POWER_SEARCH_LIMITS_MAX);
    size_t best;

    search->state = FLY_POWER_SEARCH_DONE;
    search->limit_w = search->limits[0].limit_w;
    if (count > 0 &&
        fly_power_select(points, count, &search->objective, search->max_power_w, &best, NULL) == 0)
        search->limit_w = points[best].limit_w;
}

/* Refuses an objective that could never choose, before any limit is set. */
static int check_objective(const struct fly_power_search_options *options, struct fly_error *out_error)
{
    const struct fly_power_point any = {1.0, 1.0, 1.0};
    size_t index;

    return fly_power_select(&any, 1, &options->objective, options->max_power_w, &index, out_error);
}

int fly_power_search_new(const struct fly_power_search_options *options, struct fly_power_search **out_search,
                         struct fly_error *out_error)
{
    struct fly_power_search *search = NULL;
    int code = check_options(options, out_error);

    if (code == 0)
        code = check_objective(options, out_error);
    if (code < 0)
        return code;
    search = calloc(1, sizeof *search + options->limit_count * sizeof search->limits[0]);
    if (search == NULL)
        return error_no_memory(out_error);
    search->objective = options->objective;
    search->max_power_w = options->max_power_w;
    search->warmup_steps = options->warmup_steps;
    search->countdown = options->wait_steps + 1;
    code = take_limits(search, options, out_error);
    if (code == 0)
        code = take_profile(search, options, out_error);
    if (code < 0) {
        fly_power_search_free(search);
        return code;
    }
    search->limit_w = search->limits[0].limit_w;
    if (!next_open_limit(search))
        settle(search);
    *out_search = search;
    return 0;
}

void fly_power_search_free(struct fly_power_search *search)
{
    free(search);
}

static void open_window(struct fly_power_search *search, struct fly_power_search_action *action)
{
    search->state = FLY_POWER_SEARCH_PROFILING;
    search->window_open = true;
    search->window_steps = 0;
    action->open_window = true;
}

/* Starts to try the limit at search->at. */
static void try_limit(struct fly_power_search *search, struct fly_power_search_action *action)
{
    search->state = FLY_POWER_SEARCH_WARMUP;
    search->countdown = search->warmup_steps;
    search->limit_w = action->limit_w = search->limits[search->at].limit_w;
    action->set_limit = true;
}

static void close_window(struct fly_power_search *search, bool in_step,
                         struct fly_power_search_action *action)
{
    search->window_open = false;
    search->owed = true;
    search->in_step = in_step;
    action->close_window = true;
}

/* A saved profile gives the choice before the first step; the limit still has to be set then. */
static void announce_choice(struct fly_power_search *search, struct fly_power_search_action *action)
{
    action->set_limit = true;
    action->limit_w = search->limit_w;
    search->countdown = 0;
}

static bool is_complete(const struct fly_power_search *search)
{
    const struct limit *limit = &search->limits[search->at];

    return limit->steps + search->window_steps == limit->wanted_steps;
}

int fly_power_search_step_begin(struct fly_power_search *search, struct fly_power_search_action *out_action)
{
    struct fly_power_search_action action = {0};

    if (search->owed)
        return FLY_ESTATE;
    switch (search->state) {
    case FLY_POWER_SEARCH_READY:
        if (--search->countdown == 0)
            try_limit(search, &action);
        break;
    case FLY_POWER_SEARCH_WARMUP:
        search->countdown -= search->countdown > 0;
        break;
    case FLY_POWER_SEARCH_PROFILING:
        if (search->resume)
            open_window(search, &action);
        else if (is_complete(search))
            close_window(search, true, &action);
        search->resume = false;
        break;
    case FLY_POWER_SEARCH_DONE:
        if (search->countdown > 0)
            announce_choice(search, &action);
        break;
    }
    if (search->state == FLY_POWER_SEARCH_WARMUP && search->countdown == 0)
        open_window(search, &action);
    search->window_steps += search->window_open;
    *out_action = action;
    return 0;
}

int fly_power_search_epoch_end(struct fly_power_search *search, struct fly_power_search_action *out_action)
{
    struct fly_power_search_action action = {0};

    if (search->owed)
        return FLY_ESTATE;
    if (search->window_open)
        close_window(search, false, &action);
    *out_action = action;
    return 0;
}

/* Adds a window to what was measured of its limit so far, or drops both if the window is unknown. */
static void take_window(struct fly_power_search *search, double energy_j, double time_s)
{
    struct limit *limit = &search->limits[search->at];

    if (!positive(energy_j) || !positive(time_s)) {
        limit->energy_j = limit->time_s = 0.0;
        limit->steps = 0;
        if (++limit->failures == FLY_POWER_SEARCH_TRIES)
            limit->state = LIMIT_LEFT_OUT;
        return;
    }
    limit->energy_j += energy_j;
    limit->time_s += time_s;
    limit->steps += search->window_steps;
    if (limit->steps < limit->wanted_steps)
        return;
    limit->point = (struct fly_power_point){limit->limit_w, limit->energy_j / limit->time_s,
                                            limit->time_s / (double)limit->steps};
    limit->state = LIMIT_MEASURED;
}

/* Leaves the limit on trial and goes on to the next one, or to the choice. */
static void leave_limit(struct fly_power_search *search, struct fly_power_search_action *action)
{
    if (!next_open_limit(search)) {
        settle(search);
        announce_choice(search, action);
        return;
    }
    if (!search->in_step) {
        search->state = FLY_POWER_SEARCH_READY;
        search->countdown = 1;
        return;
    }
    try_limit(search, action);
    if (search->countdown == 0)
        open_window(search, action);
}

int fly_power_search_measured(struct fly_power_search *search, double energy_j, double time_s,
                              struct fly_power_search_action *out_action)
{
    struct fly_power_search_action action = {0};

    if (!search->owed)
        return FLY_ESTATE;
    search->owed = false;
    take_window(search, energy_j, time_s);
    if (search->limits[search->at].state != LIMIT_OPEN)
        leave_limit(search, &action);
    else if (search->in_step)
        open_window(search, &action);
    else
        search->resume = true;
    search->window_steps += search->window_open;
    *out_action = action;
    return 0;
}

int fly_power_search_extend(struct fly_power_search *search, uint32_t steps,
                            struct fly_power_search_action *out_action)
{
    struct limit *limit = &search->limits[search->at];
    struct fly_power_search_action action = {0};

    if (!search->owed)
        return FLY_ESTATE;
    if (steps == 0 || steps > UINT32_MAX - limit->wanted_steps)
        return FLY_EUSAGE;
    limit->wanted_steps += steps;
    if (search->in_step) {
        search->owed = false;
        search->window_open = true;
        search->window_steps++;
    } else {
        action.close_window = true;
    }
    *out_action = action;
    return 0;
}

int fly_power_search_skip_warmup(struct fly_power_search *search)
{
    if (search->state != FLY_POWER_SEARCH_WARMUP)
        return FLY_ESTATE;
    search->countdown = 0;
    return 0;
}

void power_search_spare(struct fly_power_search *search, double limit_w)
{
    struct limit *limit = find_limit(search, limit_w);

    if (limit != NULL && limit->state == LIMIT_OPEN && limit != &search->limits[search->at])
        limit->state = LIMIT_LEFT_OUT;
}

int fly_power_search_finish(struct fly_power_search *search, struct fly_power_search_action *out_action)
{
    struct fly_power_search_action action = {0};

    if (search->owed || search->state == FLY_POWER_SEARCH_DONE)
        return FLY_ESTATE;
    for (size_t i = 0; i < search->limit_count; i++) {
        if (search->limits[i].state == LIMIT_OPEN)
            search->limits[i].state = LIMIT_LEFT_OUT;
    }
    search->window_open = search->resume = false;
    search->window_steps = 0;
    settle(search);
    announce_choice(search, &action);
    *out_action = action;
    return 0;
}

enum fly_power_search_state fly_power_search_state(const struct fly_power_search *search)
{
    return search->state;
}

double fly_power_search_limit_w(const struct fly_power_search *search)
{
    return search->limit_w;
}

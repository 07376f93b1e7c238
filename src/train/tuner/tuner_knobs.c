/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which knob is on trial. With both, the limit is searched first; then it stands, and ceilings are searched
 * under it, of which the highest means none. So the two together are never worse than the limit alone. A knob
 * that the driver refuses gives way to the other.
 */
#include <math.h>

#include "train/tuner/tuner_private.h"

/* Takes the settings of the knob on trial, and where it stands. */
static int take_one(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                    struct fly_error *out_error)
{
    int code = tuner_take_settings(tuner, options, out_error);

    if (code == 0)
        code = tuner->options.turner->standing(tuner->options.turner_data, &tuner->start_limit_w, out_error);
    if (code == 0)
        tuner->standing_w = tuner->start_limit_w;
    return code;
}

static void forget_other(struct fly_tuner *tuner)
{
    tuner->other.turner = NULL;
    tuner->other.limit_count = 0;
}

int tuner_take_knobs(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                     struct fly_error *out_error)
{
    struct fly_error limit = {.text = ""}, clock = {.text = ""};
    int limit_code, clock_code;

    tuner->other.start_w = tuner->other.standing_w = NAN;
    if (tuner->wish <= FLY_TUNER_CLOCK || tuner->wish == FLY_TUNER_PROFILE)
        return take_one(tuner, options, out_error);
    tuner->options.knob = FLY_TUNER_POWER_LIMIT;
    tuner->other.knob = FLY_TUNER_CLOCK;
    tuner->other.turner = tuner->options.clock_turner;
    tuner->other.data = tuner->options.clock_turner_data;
    tuner_swap_knobs(tuner);
    clock_code = tuner->options.turner == NULL ? FLY_EUNSUPPORTED : take_one(tuner, options, &clock);
    tuner_swap_knobs(tuner);
    limit_code = take_one(tuner, options, &limit);
    if (limit_code == FLY_EUNSUPPORTED && clock_code == 0) {
        tuner_swap_knobs(tuner);
        forget_other(tuner);
        tuner_note_knob(tuner, "power limit", limit.text, "the clock is tuned alone");
        return 0;
    }
    if (clock_code < 0) {
        forget_other(tuner);
        if (tuner->wish == FLY_TUNER_BOTH)
            tuner_note_knob(tuner, "clock", clock.text, "the power limit is tuned alone");
    }
    if (limit_code < 0 && out_error != NULL)
        *out_error = limit;
    return limit_code;
}

/* What is left of the bound once the chosen limit has taken its part. */
static double slowdown_left(const struct fly_tuner *tuner)
{
    const struct fly_tuner_point *highest = &tuner->points[0], *chosen = &tuner->points[tuner->chosen];
    double whole = tuner->options.objective.max_slowdown;

    if (!isfinite(whole) || highest->mark != FLY_TUNER_VALID || chosen->mark != FLY_TUNER_VALID)
        return whole;
    return fmax(whole * highest->time_s / chosen->time_s, 1.0);
}

bool tuner_has_next_knob(const struct fly_tuner *tuner)
{
    return tuner->wish == FLY_TUNER_BOTH && !tuner->is_second && tuner->other.turner != NULL;
}

bool tuner_next_knob(struct fly_tuner *tuner)
{
    if (!tuner_has_next_knob(tuner))
        return false;
    tuner->whole_slowdown = tuner->options.objective.max_slowdown;
    tuner->options.objective.max_slowdown = slowdown_left(tuner);
    tuner->key.under_limit_w = tuner->standing_w;
    tuner->key.knob = FLY_TUNER_CLOCK;
    tuner_swap_knobs(tuner);
    tuner->is_second = true;
    tuner->proven = false;
    return true;
}

/* Puts the limit on trial again, without turning anything. */
static void leave_second(struct fly_tuner *tuner)
{
    tuner_swap_knobs(tuner);
    tuner->is_second = false;
    tuner->options.objective.max_slowdown = tuner->whole_slowdown;
    tuner->key.under_limit_w = 0.0;
    tuner->key.knob = FLY_TUNER_POWER_LIMIT;
}

void tuner_first_knob(struct fly_tuner *tuner)
{
    if (!tuner->is_second)
        return;
    tuner_turn_one_back(tuner);
    leave_second(tuner);
}

bool tuner_gives_way(struct fly_tuner *tuner, double limit_w)
{
    double nothing = 0.0, refused = tuner->refused;

    if (!tuner_may_give_way(tuner) || !tuner_exchange(tuner, &nothing, 0, &refused, 1))
        return false;
    if (!(refused > 0.0)) {
        tuner->proven = limit_w < tuner->points[0].limit_w;
        return false;
    }
    if (!tuner->refused)
        tuner_note_refusal(tuner, "on another rank");
    tuner->refused = false;
    tuner_turn_one_back(tuner);
    tuner->turned = false;
    if (tuner->is_second)
        leave_second(tuner);
    else
        tuner_swap_knobs(tuner);
    tuner->key.knob = tuner->options.knob;
    forget_other(tuner);
    return true;
}

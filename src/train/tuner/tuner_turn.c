/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the knob and turns it back, joins the ranks, and stops at the first fault. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "train/tuner/tuner_private.h"

enum { EXCHANGED_MAX = 24 };

static void stop(struct fly_tuner *tuner)
{
    struct fly_tuner_report *report = &tuner->report;

    tuner_cost_pause(tuner);
    if (tuner->state == FLY_TUNER_SEARCHING) {
        report->search_steps += tuner->cost.steps;
        report->search_time_s += tuner->cost.time_s;
        report->search_energy_j += tuner->cost.known ? tuner->cost.energy_j : NAN;
        report->extra_time_s = report->extra_energy_j = NAN; /* nothing was chosen to compare with */
    }
    tuner->state = FLY_TUNER_STOPPED;
    tuner_rest(tuner, UINT64_MAX);
    tuner_window_drop(tuner);
    tuner_carbon_stands(tuner, NAN);
}

/* Whether another program's limit stands; if the limit cannot be read, assume that ours does. */
static bool is_foreign(struct fly_tuner *tuner)
{
    double standing_w;

    return tuner->foreign ||
           (tuner->options.turner->standing(tuner->options.turner_data, &standing_w, NULL) == 0 &&
            !tuner_is_same(tuner, standing_w, tuner->standing_w));
}

void tuner_turn_one_back(struct fly_tuner *tuner)
{
    if (!tuner->turned || is_foreign(tuner))
        return;
    if (tuner->options.turner->set(tuner->options.turner_data, tuner->start_limit_w, NULL) == 0) {
        tuner->standing_w = tuner->start_limit_w;
        tuner->turned = false;
        tuner_carbon_stands(tuner, NAN);
    }
}

void tuner_turn_back(struct fly_tuner *tuner)
{
    tuner_turn_one_back(tuner);
    if (!tuner->other.turned)
        return;
    tuner_swap_knobs(tuner);
    tuner_turn_one_back(tuner);
    tuner_swap_knobs(tuner);
}

void tuner_fault(struct fly_tuner *tuner, enum fly_tuner_reason reason, const char *format, ...)
{
    va_list arguments;

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    tuner->reason = reason;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    words_fit(tuner->report.text, sizeof tuner->report.text,
              vsnprintf(tuner->report.text, sizeof tuner->report.text, format, arguments));
    va_end(arguments);
    tuner_turn_back(tuner);
    if (tuner->options.all_reduce == NULL)
        stop(tuner);
}

void tuner_turn(struct fly_tuner *tuner, double limit_w)
{
    const struct fly_turner *turner = tuner->options.turner;
    struct fly_error error = {.text = ""};
    char text[TUNER_SETTING_MAX];
    double standing_w, most_w;

    if (tuner->reason != FLY_TUNER_GOES_ON || (tuner->turned && !tuner_check_standing(tuner)))
        return;
    if (!tuner->turned && turner->standing(tuner->options.turner_data, &standing_w, NULL) == 0)
        tuner->start_limit_w = standing_w;
    /* Also when it fails: some of several GPUs may have taken the limit and must be put back. */
    tuner->turned = true;
    if (turner->set(tuner->options.turner_data, limit_w, &error) < 0) {
        tuner->standing_w = limit_w;
        if (turner->standing(tuner->options.turner_data, &standing_w, NULL) == 0)
            tuner->standing_w = standing_w;
        if ((error.code == FLY_EPERM || error.code == FLY_EUNSUPPORTED) && tuner_may_give_way(tuner))
            tuner_note_refusal(tuner, error.text);
        else
            tuner_fault(tuner, FLY_TUNER_SET_FAILED, "the %s could not be set: %s",
                        tuner_setting_text(tuner, limit_w, text), error.text);
        return;
    }
    tuner->standing_w = limit_w;
    if (turner->standing(tuner->options.turner_data, &standing_w, &error) < 0) {
        tuner_fault(tuner, FLY_TUNER_UNREADABLE, "the limit cannot be read back: %s", error.text);
        return;
    }
    tuner->honoured = tuner_is_same(tuner, standing_w, limit_w);
    tuner->standing_w = standing_w;
    tuner->enforced_now_w = tuner_enforced_w(tuner, &most_w);
    tuner_carbon_stands(tuner, tuner->honoured ? limit_w : standing_w);
}

/* The same of the knob on trial alone. */
static bool check_one(struct fly_tuner *tuner)
{
    struct fly_error error = {.text = ""};
    char text[TUNER_SETTING_MAX], now[TUNER_SETTING_MAX];
    double standing_w;

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return false;
    if (tuner->options.turner->standing(tuner->options.turner_data, &standing_w, &error) < 0) {
        tuner_fault(tuner, FLY_TUNER_UNREADABLE, "the limit cannot be read: %s", error.text);
        return false;
    }
    if (tuner_is_same(tuner, standing_w, tuner->standing_w))
        return true;
    tuner->foreign = true;
    tuner_fault(tuner, FLY_TUNER_FOREIGN_CHANGE,
                tuner->options.knob == FLY_TUNER_CLOCK
                    ? "another program has set clocks: a GPU under a %s runs at %s; that is left so"
                    : "another program changed the %s to %s; its value stands",
                tuner_setting_text(tuner, tuner->standing_w, text), tuner_value_text(tuner, standing_w, now));
    tuner->standing_w = standing_w;
    return false;
}

bool tuner_check_standing(struct fly_tuner *tuner)
{
    bool stands = check_one(tuner);

    if (!stands || !tuner->other.turned)
        return stands;
    tuner_swap_knobs(tuner);
    stands = check_one(tuner);
    tuner_swap_knobs(tuner);
    return stands;
}

bool tuner_exchange(struct fly_tuner *tuner, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    double joined[EXCHANGED_MAX];

    if (tuner->options.all_reduce == NULL)
        return tuner->reason == FLY_TUNER_GOES_ON;
    joined[0] = tuner->reason != FLY_TUNER_GOES_ON;
    memcpy(joined + 1, maxima, max_count * sizeof *maxima);
    if (tuner->options.all_reduce(tuner->options.all_reduce_data, sums, sum_count, joined, max_count + 1) < 0)
        tuner_fault(tuner, FLY_TUNER_ALL_REDUCE, "the all-reduce over the ranks failed");
    else if (joined[0] > 0.0)
        tuner_fault(tuner, FLY_TUNER_OTHER_RANK, "another rank stopped tuning; its report says why");
    memcpy(maxima, joined + 1, max_count * sizeof *maxima);
    if (tuner->reason == FLY_TUNER_GOES_ON)
        return true;
    stop(tuner);
    return false;
}

bool tuner_all_go_on(struct fly_tuner *tuner)
{
    double nothing = 0.0;

    return tuner_exchange(tuner, &nothing, 0, &nothing, 0);
}

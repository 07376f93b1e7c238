/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "meter/figure.h"

/*
 * If a counter does not advance in this many of its periods, the window is not too short: the
 * counter stopped.
 */
static const double still_periods = 20.0;

/* Fewer samples than this cannot check a counter. */
enum { compared_samples = 10 };

void verdict_unknown(struct fly_device_energy *out_energy, const char *note)
{
    *out_energy = (struct fly_device_energy){
        .source = FLY_ENERGY_UNAVAILABLE,
        .energy_j = NAN,
        .uncertainty_j = NAN,
        .gain_error = NAN,
        .time_s = NAN,
        .mean_power_w = NAN,
        .integral_j = NAN,
        .idle_share = NAN,
        .idle_energy_share = NAN,
        .capped_share = NAN,
        .heat_share = NAN,
        .brake_share = NAN,
        .held_share = NAN,
        .counter_j = NAN,
        .clock_mhz = NAN,
        .temperature_max_c = NAN,
        .limit_w = NAN,
        .least_energy_j = NAN,
        .least_time_s = NAN,
    };
    snprintf(out_energy->note, sizeof out_energy->note, "%s", note);
}

static double share(double part, double whole)
{
    return whole > 0.0 ? part / whole : NAN;
}

static void tell_shares(const struct shares *begin, const struct shares *end, struct fly_device_energy *out)
{
    double throttle_s = end->throttle_known_s - begin->throttle_known_s;

    out->samples = end->samples - begin->samples;
    out->idle_share = share(end->idle_s - begin->idle_s, end->idle_known_s - begin->idle_known_s);
    out->idle_energy_share = share(end->idle_j - begin->idle_j, end->idle_known_j - begin->idle_known_j);
    out->capped_share = share(end->capped_s - begin->capped_s, throttle_s);
    out->heat_share = share(end->heat_s - begin->heat_s, throttle_s);
    out->brake_share = share(end->brake_s - begin->brake_s, throttle_s);
    out->held_share = share(end->held_s - begin->held_s, throttle_s);
    out->clock_mhz =
        share(end->clocks_mhz - begin->clocks_mhz, (double)(end->clock_samples - begin->clock_samples));
}

/* Adds a clause to the note, with a separator; a clause that does not fit is left out completely. */
static void note(struct fly_device_energy *out, const char *text)
{
    static const char separator[] = "; ";
    size_t used = strlen(out->note), length = strlen(text);
    size_t apart = used > 0 ? strlen(separator) : 0;

    if (used + apart + length >= sizeof out->note)
        return;
    memcpy(out->note + used, separator, apart);
    memcpy(out->note + used + apart, text, length + 1);
}

/* An interval as wide as the figure says nothing, unless the figure is the best guess all the same. */
static bool says_something(const struct device_info *info, const struct figure *figure)
{
    return figure->energy_j > 0.0 && (info->estimated || figure->wide || figure->half_j < figure->energy_j);
}

static void tell_counter(const struct device_info *info, const struct account_window *window,
                         const struct figure *figure, struct fly_device_energy *out)
{
    if (figure->energy_j <= 0.0) {
        note(out, out->time_s < still_periods * window->counter_period_s
                      ? "the window is too short: the counter did not advance in it"
                      : "the counter stood still");
        return;
    }
    if (!says_something(info, figure)) {
        note(out, "the window is too short for the counter's period");
        return;
    }
    out->source = info->estimated ? FLY_ENERGY_ESTIMATED : FLY_ENERGY_COUNTER;
    out->energy_j = figure->energy_j;
    if (info->estimated)
        note(out, "estimated from use; no bound is stated");
    else
        out->uncertainty_j = figure->half_j;
    if (window->end.counter.filled_uj != window->mark.begin.counter.filled_uj)
        note(out, "the counter was reset; sampled power fills the gap");
    else if (window->end.counter.resets != window->mark.begin.counter.resets)
        note(out, "readings that the counter cannot have reached are left out");
}

static void tell_integrated(const struct device_info *info, const struct account_window *window,
                            const struct figure *figure, struct fly_device_energy *out)
{
    double holes_s =
        window->end.integral.holes_s - window->mark.begin.integral.holes_s + figure_tail_s(window);
    char text[FLY_METER_TEXT_MAX];

    if (holes_s > 0.0) {
        snprintf(text, sizeof text, "power could not be sampled for %.1f s around the window", holes_s);
        note(out, text);
    }
    if (figure_is_averaged_away(&window->sensing, out->time_s)) {
        note(out, "the window is shorter than what a power reading averages over");
        return;
    }
    if (!says_something(info, figure)) {
        note(out, "the window is too short for the power sensor");
        return;
    }
    out->source = FLY_ENERGY_INTEGRATED;
    out->energy_j = figure->energy_j;
    out->uncertainty_j = figure->half_j;
}

/* Returns whether a counter and an integral differ by more than both may be off. */
static bool differ(const struct figure *counter, const struct figure *integral, uint64_t samples)
{
    return integral->known && samples >= compared_samples &&
           fabs(integral->energy_j - counter->energy_j) > counter->half_j + integral->half_j;
}

/*
 * Returns the counter's figure: fused with the power where that is possible and tells more, else the
 * plain difference, and why it is that: a clause, or NULL.
 */
static struct figure choose(const struct account_window *window, const struct figure *plain,
                            const struct figure *integral, const struct fly_device_energy *out,
                            const char **out_why)
{
    struct figure fused = figure_by_fusion(window, out->time_s, out_why);

    if (fused.known && differ(&fused, integral, out->samples)) {
        fused.known = false;
        *out_why = "sampled power gives another energy";
    }
    return fused.known && (fused.half_j < plain->half_j || plain->half_j >= plain->energy_j) ? fused : *plain;
}

/* If a counter and an integral differ by more than both may be off, the interval holds both, and the note
 * says so. */
static void compare(const struct figure *counter, const struct figure *integral,
                    struct fly_device_energy *out)
{
    double apart_j = integral->energy_j - counter->energy_j;
    char text[FLY_METER_TEXT_MAX];

    if (!differ(counter, integral, out->samples))
        return;
    out->disagree = true;
    out->uncertainty_j = fmax(out->uncertainty_j, fabs(apart_j));
    snprintf(text, sizeof text, "sampled power gives %+.1f %% against the counter, more than both may be off",
             100.0 * apart_j / counter->energy_j);
    note(out, text);
}

/* Notes a state, after the name of what it is about. */
static void note_state(struct fly_device_energy *out, const char *what, enum reading_state state)
{
    char text[FLY_METER_TEXT_MAX];

    snprintf(text, sizeof text, "%s: %s", what, reading_state_clause(state));
    note(out, text);
}

static void note_plain(struct fly_device_energy *out, const char *why)
{
    char text[FLY_METER_TEXT_MAX];

    if (why == NULL)
        return;
    snprintf(text, sizeof text, "plain difference of the counter: %s", why);
    note(out, text);
}

static void tell_why_not(const struct account_window *window, struct fly_device_energy *out)
{
    const struct account_edge *begin = &window->mark.begin, *end = &window->end;
    const struct account_edge *edge = end->counter.known || end->integral.known ? begin : end;
    bool only_power = edge->energy_state == READING_UNSUPPORTED || edge->energy_state == READING_NOT_READ;

    if (begin->counter.known && end->counter.known)
        note(out, "the counter was reset, and no sampled power fills the gap");
    else if (only_power && edge->power_state != READING_NOT_READ)
        note_state(out, "its power could not be read", edge->power_state);
    else
        note_state(out, "its energy could not be read", edge->energy_state);
}

/* Power readings tell something of a window that is too short for what is known of the counter. */
static bool needs_integral(const struct device_info *info, const struct account_window *window,
                           const struct figure *counter, const struct figure *integral,
                           struct fly_device_energy *out)
{
    bool needs = !says_something(info, counter) && integral->known && says_something(info, integral) &&
                 !window->disagree && out->time_s < still_periods * window->counter_period_s &&
                 !figure_is_averaged_away(&window->sensing, out->time_s);

    if (needs)
        note(out, "sampled power, since the window is too short for the counter's period");
    return needs;
}

/* A counter that is half a second late tells less of a short window than readings of power do. */
static bool prefers_integral(const struct account_window *window, const struct figure *counter,
                             const struct figure *integral, struct fly_device_energy *out)
{
    bool prefers = window->counter_late && integral->known && integral->half_j < counter->half_j &&
                   !figure_is_averaged_away(&window->sensing, out->time_s);

    if (prefers)
        note(out, figure_late_clause);
    return prefers;
}

/* A counter that has not moved for long, while power was drawn, has stopped: then the power tells more. */
static bool stands_still(const struct device_info *info, const struct account_window *window,
                         const struct figure *counter, const struct figure *integral,
                         struct fly_device_energy *out)
{
    const struct counter_edge *end = &window->end.counter;
    double still_s = fmin(end->age_low_s, out->time_s);
    bool still = still_s >= still_periods * window->counter_period_s && !info->estimated &&
                 differ(counter, integral, out->samples);

    if (still) {
        note(out, "the counter stood still");
        out->disagree = true;
    }
    return still;
}

/* What was measured before the device stopped answering is kept. */
static void tell_least(const struct account_window *window, struct fly_device_energy *out)
{
    struct account_window known = *window;
    double time_s = mono_elapsed_s(window->mark.begin.at, window->good.at);
    struct figure figure;
    char text[FLY_METER_TEXT_MAX];

    bool lost = window->end.energy_state == READING_LOST || window->end.power_state == READING_LOST;

    if (!(time_s > 0.0) || window->end.counter.known || (window->end.integral.known && !lost))
        return;
    known.end = window->good;
    figure = figure_by_counter(&known, time_s);
    if (!figure.known)
        figure = figure_by_integral(&known, time_s);
    if (!figure.known || !(figure.energy_j > 0.0))
        return;
    out->least_energy_j = figure.energy_j;
    out->least_time_s = time_s;
    snprintf(text, sizeof text, "not read after %.1f s", time_s);
    note(out, text);
}

static void tell_energy(const struct device_info *info, const struct account_window *window,
                        struct fly_device_energy *out)
{
    const struct account_edge *begin = &window->mark.begin, *end = &window->end;
    struct figure counter = figure_by_counter(window, out->time_s);
    struct figure integral = figure_by_integral(window, out->time_s);
    const char *why = NULL;
    bool counts;

    if (end->energy_state == READING_LOST || end->power_state == READING_LOST) {
        note_state(out, "its energy could not be read", READING_LOST);
        return;
    }
    if (integral.known)
        out->integral_j = integral.energy_j;
    if (counter.known)
        out->counter_j = counter.energy_j;
    counts = counter.known && !stands_still(info, window, &counter, &integral, out) &&
             !prefers_integral(window, &counter, &integral, out);
    if (counts) {
        counter = choose(window, &counter, &integral, out, &why);
        counts = !needs_integral(info, window, &counter, &integral, out);
    }
    if (counts) {
        note_plain(out, why);
        tell_counter(info, window, &counter, out);
    } else if (integral.known) {
        tell_integrated(info, window, &integral, out);
    } else {
        tell_why_not(window, out);
    }
    if (begin->counter.known != end->counter.known && out->source == FLY_ENERGY_INTEGRATED)
        note_state(out, "the counter could not be read",
                   begin->counter.known ? end->energy_state : begin->energy_state);
    if (out->source == FLY_ENERGY_COUNTER)
        compare(&counter, &integral, out);
    out->mean_power_w = out->energy_j / out->time_s;
}

void verdict_give(const struct device_info *info, const struct account_window *window,
                  struct fly_device_energy *out_energy)
{
    const struct account_mark *mark = &window->mark;

    verdict_unknown(out_energy, info->note);
    out_energy->time_s = mono_elapsed_s(mark->begin.at, window->end.at);
    if (info->sensor.gain_error > 0.0)
        out_energy->gain_error = info->sensor.gain_error;
    if (mark->temperature_max_c != INT64_MIN)
        out_energy->temperature_max_c = (double)mark->temperature_max_c;
    if (window->end.power_limit.state == READING_OK)
        out_energy->limit_w = (double)window->end.power_limit.value * 1e-3;
    tell_shares(&mark->begin.shares, &window->end.shares, out_energy);
    if (out_energy->time_s > 0.0) {
        tell_energy(info, window, out_energy);
        if (out_energy->source == FLY_ENERGY_UNAVAILABLE)
            tell_least(window, out_energy);
    } else
        note(out_energy, "the window has no length");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/verdict.h"

#include <math.h>
#include <stdio.h>

#include "meter/uncertainty.h"

/* Where nothing is known of a counter: what boards were seen to have at most. */
static const double assumed_period_s[DEVICE_KIND_COUNT] = {
    [DEVICE_GPU] = 0.1, [DEVICE_CPU] = 0.001, [DEVICE_DRAM] = 0.001};

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
        .temperature_max_c = NAN,
        .limit_w = NAN,
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
}

static void tell_integral(const struct integral_edge *begin, const struct integral_edge *end,
                          struct fly_device_energy *out)
{
    if (begin->known && end->known && begin->holes == end->holes)
        out->integral_j = end->total_j - begin->total_j;
}

static void note(struct fly_device_energy *out, const char *text)
{
    snprintf(out->note, sizeof out->note, "%s", text);
}

static void tell_counter(const struct device_info *info, const struct account_edge *begin,
                         const struct account_edge *end, struct fly_device_energy *out)
{
    double period_s =
        info->sensor.counter_period_s > 0.0 ? info->sensor.counter_period_s : assumed_period_s[info->kind];
    double energy_j = (double)(end->counter.total_uj - begin->counter.total_uj) * 1e-6;
    double mean_w = energy_j / out->time_s;
    double begin_w = begin->integral.known ? fmax(begin->integral.power_w, mean_w) : mean_w;
    double end_w = end->integral.known ? fmax(end->integral.power_w, mean_w) : mean_w;
    double half_j = uncertainty_edges_j(begin_w * period_s, end_w * period_s) + begin->read_s * begin_w +
                    end->read_s * end_w;

    if (end->counter.holes != begin->counter.holes) {
        note(out, "the counter was reset, and no power reading fills the gap");
    } else if (energy_j <= 0.0) {
        note(out, "the window is too short: the counter did not advance in it");
    } else if (half_j >= energy_j) {
        note(out, "the window is too short for the counter's period");
    } else {
        out->source = info->estimated ? FLY_ENERGY_ESTIMATED : FLY_ENERGY_COUNTER;
        out->energy_j = energy_j;
        out->uncertainty_j = info->estimated ? NAN : half_j;
        if (info->estimated)
            note(out, "an estimate from use; no bound is stated");
        else if (end->counter.resets != begin->counter.resets)
            note(out, "the counter was reset; the gap is filled from sampled power");
    }
}

static void tell_integrated(const struct account_edge *begin, const struct account_edge *end,
                            struct fly_device_energy *out)
{
    if (begin->integral.holes != end->integral.holes) {
        note(out, "the power could not be sampled for a part of the window");
        return;
    }
    out->source = FLY_ENERGY_INTEGRATED;
    out->energy_j = end->integral.total_j - begin->integral.total_j;
    out->uncertainty_j = 0.1 * out->energy_j;
}

static void tell_why_not(const struct account_edge *edge, struct fly_device_energy *out)
{
    enum reading_state state =
        edge->power_state == READING_NOT_READ || edge->energy_state != READING_UNSUPPORTED
            ? edge->energy_state
            : edge->power_state;

    snprintf(out->note, sizeof out->note, "no energy could be read: %s", reading_state_clause(state));
}

void verdict_give(const struct device_info *info, const struct account_mark *mark,
                  const struct account_edge *end, struct fly_device_energy *out_energy)
{
    const struct account_edge *begin = &mark->begin;

    verdict_unknown(out_energy, info->note);
    out_energy->time_s = mono_elapsed_s(begin->at, end->at);
    if (info->sensor.gain_error > 0.0)
        out_energy->gain_error = info->sensor.gain_error;
    if (mark->temperature_max_c != INT64_MIN)
        out_energy->temperature_max_c = (double)mark->temperature_max_c;
    if (end->power_limit.state == READING_OK)
        out_energy->limit_w = (double)end->power_limit.value * 1e-3;
    tell_shares(&begin->shares, &end->shares, out_energy);
    tell_integral(&begin->integral, &end->integral, out_energy);
    if (begin->counter.known && end->counter.known)
        tell_counter(info, begin, end, out_energy);
    else if (begin->integral.known && end->integral.known)
        tell_integrated(begin, end, out_energy);
    else
        tell_why_not(end->counter.known ? begin : end, out_energy);
    if (out_energy->time_s > 0.0)
        out_energy->mean_power_w = out_energy->energy_j / out_energy->time_s;
}

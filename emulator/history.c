/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/history.h"

#include <math.h>

#include "device/nvidia/nvml_abi.h"

#define REASONS_CAPPED ((uint64_t)NVML_REASON_POWER_CAP)
#define REASONS_HOT ((uint64_t)(NVML_REASON_SOFTWARE_THERMAL | NVML_REASON_HARDWARE_THERMAL))

static const struct segment *at_index(const struct history *history, uint64_t index)
{
    return &history->ring[index % EMULATOR_SEGMENTS];
}

static uint64_t oldest(const struct history *history)
{
    return history->count > EMULATOR_SEGMENTS ? history->count - EMULATOR_SEGMENTS : 0;
}

static double since_s(const struct segment *segment, int64_t at_ns)
{
    return (double)(at_ns - segment->start_ns) / 1e9;
}

/* b of the header; 0 where the regulator has nothing to do. */
static double lag_w(const struct segment *segment, const struct inertia *inertia)
{
    if (segment->off_w == 0.0 || inertia->limit_settle_s <= 0.0)
        return 0.0;
    return segment->off_w * inertia->limit_settle_s / (inertia->limit_settle_s - inertia->settle_s);
}

/* What is left of a regulator's error after that time; none where it has no inertia. */
static double left(const struct inertia *inertia, double after_s)
{
    return inertia->limit_settle_s > 0.0 ? exp(-after_s / inertia->limit_settle_s) : 0.0;
}

static double power_w(const struct segment *segment, const struct inertia *inertia, double after_s)
{
    double b_w = lag_w(segment, inertia);

    if (after_s <= 0.0)
        return segment->power_w;
    return segment->target_w + b_w * left(inertia, after_s) +
           (segment->power_w - segment->target_w - b_w) * exp(-after_s / inertia->settle_s);
}

static double energy_j(const struct segment *segment, const struct inertia *inertia, double after_s)
{
    double b_w = lag_w(segment, inertia);
    double excess_w = segment->power_w - segment->target_w - b_w;

    if (after_s <= 0.0)
        return segment->energy_j + segment->power_w * after_s;
    return segment->energy_j + segment->target_w * after_s -
           (b_w != 0.0 ? b_w * inertia->limit_settle_s * expm1(-after_s / inertia->limit_settle_s) : 0.0) -
           excess_w * inertia->settle_s * expm1(-after_s / inertia->settle_s);
}

/* The temperature that follows a part of the power which decays with `time_s`, per watt of it. */
static double following(const struct inertia *inertia, double time_s)
{
    return inertia->heating_c_per_w * time_s / (time_s - inertia->thermal_s);
}

/* The particular solutions decay with the power's parts, the rest with the thermal time. */
static double temperature_c(const struct segment *segment, const struct inertia *inertia, double after_s)
{
    double b_w = lag_w(segment, inertia);
    double steady_c = inertia->ambient_c + inertia->heating_c_per_w * segment->target_w;
    double slow_c = b_w != 0.0 ? b_w * following(inertia, inertia->limit_settle_s) : 0.0;
    double fast_c = (segment->power_w - segment->target_w - b_w) * following(inertia, inertia->settle_s);

    if (after_s <= 0.0)
        return segment->temperature_c;
    return steady_c + slow_c * left(inertia, after_s) + fast_c * exp(-after_s / inertia->settle_s) +
           (segment->temperature_c - steady_c - slow_c - fast_c) * exp(-after_s / inertia->thermal_s);
}

static double allowance(const struct segment *segment, const struct inertia *inertia, double after_s)
{
    return segment->allowed + (segment->allowance - segment->allowed) * left(inertia, fmax(after_s, 0.0));
}

static double time_with(const struct segment *segment, uint64_t reasons, double until_s, int64_t at_ns)
{
    double after_s = since_s(segment, at_ns);

    return until_s + ((segment->reasons & reasons) != 0 && after_s > 0.0 ? after_s : 0.0);
}

void history_start(struct history *history, const struct inertia *inertia, int64_t at_ns, double idle_w,
                   uint64_t reasons)
{
    history->count = 1;
    history->ring[0] = (struct segment){
        .start_ns = at_ns,
        .power_w = idle_w,
        .target_w = idle_w,
        .temperature_c = inertia->ambient_c + inertia->heating_c_per_w * idle_w,
        .allowance = 1.0,
        .allowed = 1.0,
        .reasons = reasons,
    };
}

void history_append(struct history *history, const struct inertia *inertia, int64_t at_ns,
                    const struct segment_change *change)
{
    const struct segment *last = history_newest(history);
    int64_t start_ns = at_ns > last->start_ns ? at_ns : last->start_ns;
    double after_s = since_s(last, start_ns);
    struct segment next = {
        .start_ns = start_ns,
        .power_w = power_w(last, inertia, after_s),
        .temperature_c = temperature_c(last, inertia, after_s),
        .energy_j = energy_j(last, inertia, after_s),
        .capped_s = time_with(last, REASONS_CAPPED, last->capped_s, start_ns),
        .hot_s = time_with(last, REASONS_HOT, last->hot_s, start_ns),
        .busy_s = last->busy_s + last->utilization * after_s,
        .allowance = allowance(last, inertia, after_s),
        .allowed = change->allowed,
        .target_w = change->target_w,
        .clock = change->clock,
        .utilization = change->utilization,
        .reasons = change->reasons,
    };
    uint64_t index = start_ns == last->start_ns ? history->count - 1 : history->count;

    next.off_w = inertia->limit_settle_s > 0.0 ? (next.allowance - next.allowed) * change->free_w : 0.0;

    /* Count it last: a process that dies here leaves a complete history. */
    history->ring[index % EMULATOR_SEGMENTS] = next;
    history->count = index + 1;
}

const struct segment *history_newest(const struct history *history)
{
    return at_index(history, history->count - 1);
}

const struct segment *history_find(const struct history *history, int64_t at_ns)
{
    uint64_t low = oldest(history), high = history->count;

    /* `high` and all after it begin later; `low` does not, or is the oldest. */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (at_index(history, middle)->start_ns <= at_ns)
            low = middle;
        else
            high = middle;
    }
    return at_index(history, low);
}

int64_t history_known_ns(const struct history *history)
{
    return oldest(history) > 0 ? at_index(history, oldest(history))->start_ns : INT64_MIN;
}

double history_power_w(const struct history *history, const struct inertia *inertia, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return power_w(segment, inertia, since_s(segment, at_ns));
}

double history_energy_j(const struct history *history, const struct inertia *inertia, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return energy_j(segment, inertia, since_s(segment, at_ns));
}

double history_temperature_c(const struct history *history, const struct inertia *inertia, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return temperature_c(segment, inertia, since_s(segment, at_ns));
}

double history_allowance(const struct history *history, const struct inertia *inertia, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return allowance(segment, inertia, since_s(segment, at_ns));
}

double history_capped_s(const struct history *history, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return time_with(segment, REASONS_CAPPED, segment->capped_s, at_ns);
}

double history_hot_s(const struct history *history, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return time_with(segment, REASONS_HOT, segment->hot_s, at_ns);
}

static double busy_s(const struct history *history, int64_t at_ns)
{
    const struct segment *segment = history_find(history, at_ns);

    return segment->busy_s + segment->utilization * fmax(since_s(segment, at_ns), 0.0);
}

double history_mean_utilization(const struct history *history, int64_t at_ns, double window_s)
{
    return (busy_s(history, at_ns) - busy_s(history, at_ns - (int64_t)(window_s * 1e9))) / window_s;
}

double history_mean_w(const struct history *history, const struct inertia *inertia, int64_t at_ns,
                      double window_s)
{
    if (window_s <= 0.0)
        return history_power_w(history, inertia, at_ns);
    return (history_energy_j(history, inertia, at_ns) -
            history_energy_j(history, inertia, at_ns - (int64_t)(window_s * 1e9))) /
           window_s;
}

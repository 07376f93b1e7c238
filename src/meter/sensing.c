/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/sensing.h"

#include <math.h>

/*
 * For counters of which nothing is known: the longest period observed on GPUs, and the one
 * documented for RAPL.
 */
static const double counter_period_s[DEVICE_KIND_COUNT] = {
    [DEVICE_GPU] = 0.1, [DEVICE_CPU] = 0.001, [DEVICE_DRAM] = 0.001};

/*
 * For power readings of which nothing is known: as on A100 and H100, which see least of all
 * boards measured.
 */
static const double power_period_s = 0.1, power_window_s = 0.025, average_window_s = 1.0;

static double known_or(double value, double otherwise)
{
    return value > 0.0 ? value : otherwise;
}

struct sensing sensing_of(const struct device_info *info, double sample_s, bool average)
{
    struct sensing sensing = {
        .counter_period_s = known_or(info->sensor.counter_period_s, counter_period_s[info->kind]),
        .power_period_s = known_or(info->sensor.power_period_s, power_period_s),
        .power_window_s = known_or(info->sensor.power_window_s, power_window_s),
        .counter_from_power = info->sensor.counter_from_power,
        .sample_s = sample_s,
    };

    if (average)
        sensing.power_window_s = fmax(sensing.power_window_s, average_window_s);
    sensing.apart_s = fmax(sample_s, sensing.power_period_s);
    /* A reading is half a period old on average, and describes the middle of its window. */
    sensing.lag_s = 0.5 * (sensing.power_period_s + sensing.power_window_s);
    sensing.counter_window_s = fmin(sensing.power_window_s, sensing.power_period_s);
    sensing.counter_lag_s = 0.5 * (sensing.power_period_s + sensing.counter_window_s);
    return sensing;
}

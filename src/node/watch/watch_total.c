/* SPDX-License-Identifier: Apache-2.0 */
#include "node/watch/watch_total.h"

#include <math.h>
#include <time.h>

static double reading_w(const struct reading *reading)
{
    return reading->state == READING_OK ? (double)reading->value * 1e-3 : NAN;
}

double watch_power_w(const struct device_reading *reading)
{
    double instant_w = reading_w(&reading->values[QUANTITY_POWER_INSTANT]);

    return isfinite(instant_w) ? instant_w : reading_w(&reading->values[QUANTITY_POWER_AVERAGE]);
}

/* Time since the machine was started, beyond which no counter can have counted. */
static double uptime_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec;
}

static void add(struct watch_total *total, int64_t energy_uj, bool unobserved)
{
    total->energy_uj += energy_uj;
    total->unobserved_uj += unobserved ? energy_uj : 0;
}

/* Returns whether a device can have drawn that much in that time. */
static bool is_plausible(uint64_t energy_uj, double elapsed_s)
{
    return (double)energy_uj <= (elapsed_s + 1.0) * COUNTER_POWER_MAX_W * 1e6;
}

static double integrated_j(const struct watch_total *total, double power_w, double elapsed_s)
{
    return elapsed_s <= WATCH_GAP_S ? 0.5 * (total->power_w + power_w) * elapsed_s : NAN;
}

/* Returns by how much the counter rose since a daemon before this one; 0: unknown. */
static int64_t resume_counter(struct watch_total *total, const struct device_info *info, uint64_t counter_uj)
{
    uint64_t delta_uj;

    if (!counter_delta_uj(info->energy_modulus_uj, total->counter_uj, counter_uj, &delta_uj)) {
        total->resets++;
        delta_uj = counter_uj;
    }
    return is_plausible(delta_uj, uptime_s()) ? (int64_t)delta_uj : 0;
}

static int64_t follow_counter(struct watch_total *total, uint64_t counter_uj, struct mono_time at,
                              double power_w, double elapsed_s)
{
    struct counter *counter = &total->counter;
    uint64_t before_uj = counter->total_uj;
    uint32_t resets = counter->resets, holes = counter->holes;
    bool fell_to_it = counter_uj < counter->value_uj && is_plausible(counter_uj, elapsed_s);
    int64_t delta_uj;

    (void)counter_take(counter, at, counter_uj,
                       fell_to_it ? (double)counter_uj * 1e-6 : integrated_j(total, power_w, elapsed_s));
    total->resets += counter->resets - resets;
    if (counter->holes > holes)
        total->unknown_s += elapsed_s;
    /* A total never falls. */
    delta_uj = (int64_t)(counter->total_uj - before_uj) - total->ahead_uj;
    total->ahead_uj = delta_uj < 0 ? -delta_uj : 0;
    return delta_uj < 0 ? 0 : delta_uj;
}

static int64_t take_counter(struct watch_total *total, const struct device_info *info,
                            const struct device_reading *reading, struct mono_time at, double power_w,
                            double elapsed_s)
{
    const struct reading *most = &reading->values[QUANTITY_POWER_LIMIT_MAX];
    uint64_t counter_uj = (uint64_t)reading->values[QUANTITY_ENERGY].value;
    bool resumed = total->resumed;
    int64_t delta_uj = 0;

    total->counter.modulus_uj = info->energy_modulus_uj;
    if (most->state == READING_OK)
        total->counter.power_max_w = counter_power_max_w(most->value);
    if (!total->counter.known) {
        delta_uj = resumed ? resume_counter(total, info, counter_uj) : 0;
        (void)counter_take(&total->counter, at, counter_uj, NAN);
    } else {
        delta_uj = follow_counter(total, counter_uj, at, power_w, elapsed_s);
    }
    total->counts = true;
    total->resumed = total->powered = false;
    total->counter_uj = counter_uj;
    add(total, delta_uj, resumed || elapsed_s > WATCH_GAP_S);
    return delta_uj;
}

static int64_t take_power(struct watch_total *total, double power_w, double elapsed_s)
{
    int64_t energy_uj = 0;

    if (total->powered && elapsed_s <= WATCH_GAP_S) {
        double exact_uj = total->part_uj + (total->power_w + power_w) / 2.0 * elapsed_s * 1e6;

        energy_uj = (int64_t)exact_uj;
        total->part_uj = exact_uj - (double)energy_uj;
        add(total, energy_uj, false);
    } else if (total->at.ns != 0) {
        total->unknown_s += elapsed_s;
    }
    total->powered = true;
    return energy_uj;
}

int64_t watch_total_take(struct watch_total *total, const struct device_info *info,
                         const struct device_reading *reading)
{
    const struct reading *counter = &reading->values[QUANTITY_ENERGY];
    struct mono_time at = mono_middle(reading->before, reading->after);
    double elapsed_s = total->at.ns == 0 ? 0.0 : mono_elapsed_s(total->at, at);
    double power_w = watch_power_w(reading);
    int64_t delta_uj;

    if (counter->state == READING_OK && counter->value >= 0)
        delta_uj = take_counter(total, info, reading, at, power_w, elapsed_s);
    else if (!total->counts && isfinite(power_w) && power_w >= 0.0)
        delta_uj = take_power(total, power_w, elapsed_s);
    else
        return 0; /* a counter that comes back tells what was drawn meanwhile */
    total->at = at;
    total->power_w = power_w;
    return delta_uj;
}

void watch_total_resume(struct watch_total *total, const struct watch_total *saved)
{
    *total = (struct watch_total){
        .energy_uj = saved->energy_uj,
        .unobserved_uj = saved->unobserved_uj,
        .unknown_s = saved->unknown_s,
        .resets = saved->resets,
        .counts = saved->counts,
        .counter_uj = saved->counter_uj,
        .resumed = saved->counts,
        .power_w = NAN,
    };
}

void watch_total_reboot(struct watch_total *saved)
{
    saved->counter_uj = 0;
}

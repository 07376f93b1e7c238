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
    return (double)energy_uj <= (elapsed_s + 1.0) * WATCH_MOST_W * 1e6;
}

static int64_t take_counter(struct watch_total *total, const struct device_info *info, uint64_t counter_uj,
                            double elapsed_s)
{
    bool known = total->counts, resumed = total->resumed;
    double could_s = resumed || total->at.ns == 0 ? uptime_s() : elapsed_s;
    uint64_t delta_uj = 0;

    if (known && !counter_delta_uj(info->energy_modulus_uj, total->counter_uj, counter_uj, &delta_uj)) {
        total->resets++;
        delta_uj = counter_uj;
    }
    if (!known || !is_plausible(delta_uj, could_s))
        delta_uj = 0;
    total->counts = true;
    total->resumed = total->powered = false;
    total->counter_uj = counter_uj;
    add(total, (int64_t)delta_uj, resumed || elapsed_s > WATCH_GAP_S);
    return (int64_t)delta_uj;
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
    total->power_w = power_w;
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
        delta_uj = take_counter(total, info, (uint64_t)counter->value, elapsed_s);
    else if (!total->counts && isfinite(power_w) && power_w >= 0.0)
        delta_uj = take_power(total, power_w, elapsed_s);
    else
        return 0; /* a counter that comes back tells what was drawn meanwhile */
    total->at = at;
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
    };
}

void watch_total_reboot(struct watch_total *saved)
{
    saved->counter_uj = 0;
}

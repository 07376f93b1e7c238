/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine/monitored.h"

#include <math.h>
#include <stdio.h>

#include "cli/views/reading_view.h"

static const double uj_per_j = 1e6, mw_per_w = 1e3;

void monitored_init(struct monitored *watch, const struct device *device)
{
    *watch = (struct monitored){.device = device, .power_w = NAN, .energy_j = NAN};
    snprintf(watch->power_reason, sizeof watch->power_reason, "it was not read yet");
    snprintf(watch->energy_reason, sizeof watch->energy_reason, "it was not read yet");
}

static void lose_energy(struct monitored *watch, const char *reason)
{
    watch->broken = true;
    snprintf(watch->energy_reason, sizeof watch->energy_reason, "%s", reason);
}

/*
 * Takes the counter. Returns the mean power since the counter last changed, NAN while it has not:
 * a counter that is slower than its reader does not mean that the device draws nothing.
 */
static double take_counter(struct monitored *watch, uint64_t counter_uj, struct mono_time at)
{
    bool first = !watch->counted;
    uint64_t before_uj = watch->counter_uj;
    double elapsed_s = mono_elapsed_s(watch->counter_at, at);
    uint64_t delta_uj;

    if (!first && counter_uj == before_uj)
        return NAN;
    watch->counter_uj = counter_uj;
    watch->counter_at = at;
    watch->counted = true;
    watch->source = watch->device->info.estimated ? "estimated" : "counter";
    if (first)
        return NAN;
    if (!counter_delta_uj(watch->device->info.energy_modulus_uj, before_uj, counter_uj, &delta_uj)) {
        lose_energy(watch, "the counter was reset");
        return NAN;
    }
    watch->sum_j += (double)delta_uj / uj_per_j;
    return elapsed_s > 0 ? (double)delta_uj / uj_per_j / elapsed_s : NAN;
}

/* Integrates the power of a device without a counter. */
static void take_power(struct monitored *watch, const struct reading *power, struct mono_time at)
{
    double power_w = (double)power->value / mw_per_w;
    char reason[READING_REASON_MAX];

    if (power->state != READING_OK) {
        if (watch->sensed)
            lose_energy(watch, "the power could not be read for a part of the time");
        else
            snprintf(watch->energy_reason, sizeof watch->energy_reason, "%s", reading_reason(power, reason));
        return;
    }
    watch->source = "integrated";
    if (watch->sensed)
        watch->sum_j += 0.5 * (watch->sensor_w + power_w) * mono_elapsed_s(watch->sensor_at, at);
    watch->sensor_w = power_w;
    watch->sensor_at = at;
    watch->sensed = true;
}

static void take_energy(struct monitored *watch, const struct device_reading *reading, double *out_mean_w)
{
    const struct reading *counter = &reading->values[QUANTITY_ENERGY];
    struct mono_time at = mono_middle(reading->before, reading->after);
    char reason[READING_REASON_MAX];

    watch->energy_j = NAN;
    if (counter->state == READING_OK) {
        *out_mean_w = take_counter(watch, (uint64_t)counter->value, at);
    } else if (watch->counted) {
        /* The counter's next reading includes what is missing now; until then the energy is not known. */
        if (!watch->broken)
            snprintf(watch->energy_reason, sizeof watch->energy_reason, "%s",
                     reading_reason(counter, reason));
        return;
    } else {
        take_power(watch, reading_power(reading), at);
    }
    if (watch->broken || !(watch->counted || watch->sensed))
        return;
    if (watch->sum_j > 0 || !watch->counted || watch->readings == 0)
        watch->energy_j = watch->sum_j;
    else
        snprintf(watch->energy_reason, sizeof watch->energy_reason, "the counter has not moved yet");
}

static void tell_power(struct monitored *watch, const struct device_reading *reading, double mean_w)
{
    const struct reading *power = reading_power(reading);
    char reason[READING_REASON_MAX];

    watch->power_w = NAN;
    if (power->state == READING_OK)
        watch->power_w = (double)power->value / mw_per_w;
    else if (!isnan(mean_w))
        watch->power_w = mean_w;
    else if (reading->values[QUANTITY_ENERGY].state == READING_OK)
        snprintf(watch->power_reason, sizeof watch->power_reason,
                 watch->readings > 0 ? "the counter has not moved since it was read before"
                                     : "it follows from two readings of the counter");
    else
        snprintf(watch->power_reason, sizeof watch->power_reason, "%s", reading_reason(power, reason));
}

void monitored_take(struct monitored *watch, const struct device_reading *reading)
{
    double mean_w = NAN;

    watch->reading = *reading;
    take_energy(watch, reading, &mean_w);
    tell_power(watch, reading, mean_w);
    watch->readings++;
    watch->history_w[watch->history_count % MONITORED_HISTORY] = watch->power_w;
    watch->history_count++;
}

double monitored_history_w(const struct monitored *watch, size_t back)
{
    if (back >= MONITORED_HISTORY || back >= watch->history_count)
        return NAN;
    return watch->history_w[(watch->history_count - 1 - back) % MONITORED_HISTORY];
}

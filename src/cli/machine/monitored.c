/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine/monitored.h"

#include <math.h>
#include <stdio.h>

#include "cli/views/reading_view.h"
#include "device/quantity.h"

static const struct {
    int64_t bits;
    const char *word;
} words[] = {
    {THROTTLE_POWER_CAP, "power cap"},     {THROTTLE_HEAT_SOFTWARE | THROTTLE_HEAT_HARDWARE, "heat"},
    {THROTTLE_POWER_BRAKE, "power brake"}, {THROTTLE_HARDWARE, "hardware"},
    {THROTTLE_SYNC_BOOST, "sync boost"},
};

char *throttle_text(int64_t reasons, char text[THROTTLE_TEXT_MAX])
{
    size_t length = 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((reasons & words[i].bits) != 0)
            length += (size_t)snprintf(text + length, THROTTLE_TEXT_MAX - length, "%s%s",
                                       length > 0 ? ", " : "", words[i].word);
    }
    if (length == 0)
        snprintf(text, THROTTLE_TEXT_MAX, "none");
    return text;
}

static const double j_per_uj = 1e-6, mw_per_w = 1e3;

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

/* Returns the energy since the last power reading by the trapezoidal rule; NAN: unknown. */
static double integrated_j(const struct monitored *watch, const struct reading *power, struct mono_time at)
{
    if (!watch->sensed || power->state != READING_OK)
        return NAN;
    return 0.5 * (watch->sensor_w + (double)power->value / mw_per_w) * mono_elapsed_s(watch->sensor_at, at);
}

static void keep_power(struct monitored *watch, const struct reading *power, struct mono_time at)
{
    if (power->state != READING_OK)
        return;
    watch->sensor_w = (double)power->value / mw_per_w;
    watch->sensor_at = at;
    watch->sensed = true;
}

/*
 * Takes the counter. Returns the mean power since the counter last changed, NAN while it has not:
 * a counter that is slower than its reader does not mean that the device draws nothing.
 */
static double take_counter(struct monitored *watch, const struct device_reading *reading, struct mono_time at)
{
    const struct reading *most = &reading->values[QUANTITY_POWER_LIMIT_MAX];
    struct counter *counter = &watch->counter;
    uint64_t counter_uj = (uint64_t)reading->values[QUANTITY_ENERGY].value, before_uj = counter->total_uj;
    bool first = !counter->known, moved = first || counter_uj != counter->value_uj;
    double elapsed_s = mono_elapsed_s(watch->moved_at, at);
    uint32_t resets = counter->resets;

    counter->modulus_uj = watch->device->info.energy_modulus_uj;
    if (most->state == READING_OK)
        counter->power_max_w = counter_power_max_w(most->value);
    (void)counter_take(counter, at, counter_uj, integrated_j(watch, reading_power(reading), at));
    if (first)
        watch->first_uj = counter->total_uj;
    if (moved)
        watch->moved_at = at;
    watch->source = watch->device->info.estimated ? "estimated" : "counter";
    if (counter->holes > 0)
        snprintf(watch->energy_reason, sizeof watch->energy_reason, "the counter was reset");
    else if (counter->total_uj > watch->first_uj || watch->readings == 0)
        watch->energy_j = (double)(counter->total_uj - watch->first_uj) * j_per_uj;
    else
        snprintf(watch->energy_reason, sizeof watch->energy_reason, "the counter has not moved yet");
    if (first || !moved || resets != counter->resets || !(elapsed_s > 0.0))
        return NAN;
    return (double)(counter->total_uj - before_uj) * j_per_uj / elapsed_s;
}

/* Integrates the power of a device without a counter. */
static void take_power(struct monitored *watch, const struct reading *power, struct mono_time at)
{
    char reason[READING_REASON_MAX];

    if (power->state == READING_OK) {
        watch->source = "integrated";
        if (watch->sensed)
            watch->sum_j += integrated_j(watch, power, at);
        if (!watch->broken)
            watch->energy_j = watch->sum_j;
    } else if (watch->sensed) {
        lose_energy(watch, "the power could not be read for a part of the time");
    } else {
        snprintf(watch->energy_reason, sizeof watch->energy_reason, "%s", reading_reason(power, reason));
    }
}

static void take_energy(struct monitored *watch, const struct device_reading *reading, double *out_mean_w)
{
    const struct reading *counter = &reading->values[QUANTITY_ENERGY];
    struct mono_time at = mono_middle(reading->before, reading->after);
    char reason[READING_REASON_MAX];

    watch->energy_j = NAN;
    if (counter->state == READING_OK)
        *out_mean_w = take_counter(watch, reading, at);
    else if (!watch->counter.known)
        take_power(watch, reading_power(reading), at);
    else if (watch->counter.holes == 0)
        /* The counter's next reading includes what is missing now; until then the energy is not known. */
        snprintf(watch->energy_reason, sizeof watch->energy_reason, "%s", reading_reason(counter, reason));
    keep_power(watch, reading_power(reading), at);
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

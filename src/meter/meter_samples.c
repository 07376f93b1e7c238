/* SPDX-License-Identifier: Apache-2.0 */
/* What devices say at one moment, and the samples that a meter keeps of them. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "meter/meter_handle.h"
#include "meter/timeline.h"

enum {
    READ = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
           QUANTITY_BIT(QUANTITY_POWER_AVERAGE) | QUANTITY_BIT(QUANTITY_TEMPERATURE),
    LIMITS = QUANTITY_BIT(QUANTITY_POWER_LIMIT) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) |
             QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_DEFAULT),
};

static int check(const struct fly_meter *meter, struct fly_error *out_error)
{
    if (meter->forks == fork_generation())
        return 0;
    return error_set(out_error, FLY_ESTATE,
                     "the meter was opened before a fork and reads in the parent alone; open another here");
}

static int check_device(const struct fly_meter *meter, size_t device, struct fly_error *out_error)
{
    int code = check(meter, out_error);

    if (code == 0 && device >= meter->devices->count)
        code =
            error_set(out_error, FLY_EUSAGE, "device %zu: the meter has %zu", device, meter->devices->count);
    return code;
}

int fly_meter_read(struct fly_meter *meter, size_t device, struct fly_sample *out_sample,
                   struct fly_error *out_error)
{
    struct device_reading reading;
    int code = check_device(meter, device, out_error);

    if (code < 0)
        return code;
    device_read(&meter->devices->devices[device], meter->clock, READ, &reading);
    *out_sample = timeline_sample(&reading, meter->clock);
    return 0;
}

static double watts(const struct device_reading *reading, enum quantity quantity)
{
    const struct reading *of = &reading->values[quantity];

    return of->state == READING_OK ? (double)of->value * 1e-3 : NAN;
}

int fly_meter_power_limits(struct fly_meter *meter, size_t device, struct fly_power_limits *out_limits,
                           struct fly_error *out_error)
{
    struct device_reading reading;
    int code = check_device(meter, device, out_error);

    if (code < 0)
        return code;
    device_read(&meter->devices->devices[device], meter->clock, LIMITS, &reading);
    *out_limits = (struct fly_power_limits){.limit_w = watts(&reading, QUANTITY_POWER_LIMIT),
                                            .lowest_w = watts(&reading, QUANTITY_POWER_LIMIT_MIN),
                                            .highest_w = watts(&reading, QUANTITY_POWER_LIMIT_MAX),
                                            .default_w = watts(&reading, QUANTITY_POWER_LIMIT_DEFAULT)};
    return 0;
}

double fly_meter_device_max_power_w(struct fly_meter *meter, size_t device)
{
    struct fly_power_limits limits;

    return fly_meter_power_limits(meter, device, &limits, NULL) == 0 ? limits.highest_w : NAN;
}

size_t fly_meter_clocks(struct fly_meter *meter, size_t device, enum fly_clock clock,
                        uint32_t *out_clocks_mhz, size_t capacity)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;

    if (check_device(meter, device, NULL) < 0 ||
        device_clocks_of(&meter->devices->devices[device],
                         clock == FLY_CLOCK_GPU ? QUANTITY_CLOCK_CEILING : QUANTITY_MEMORY_CLOCK_CEILING,
                         clocks_mhz, DEVICE_CLOCKS_MAX, &count, NULL) < 0)
        return 0;
    for (size_t i = 0; i < count && i < capacity; i++)
        out_clocks_mhz[i] = (uint32_t)clocks_mhz[i];
    return count;
}

static void free_timelines(struct timeline *timelines, size_t count)
{
    for (size_t i = 0; timelines != NULL && i < count; i++)
        timeline_deinit(&timelines[i]);
    free(timelines);
}

void meter_free_samples(struct fly_meter *meter)
{
    free_timelines(atomic_load(&meter->sampler.timelines), meter->devices->count);
}

int fly_meter_keep(struct fly_meter *meter, size_t samples_max, struct fly_error *out_error)
{
    size_t count = meter->devices->count;
    struct timeline *none = NULL, *timelines;
    bool whole = true;
    int code = check(meter, out_error);

    if (code < 0)
        return code;
    if (samples_max == 0 || samples_max > FLY_METER_SAMPLES_MAX)
        return error_set(out_error, FLY_EUSAGE, "%zu samples cannot be kept; give 1 to %d", samples_max,
                         FLY_METER_SAMPLES_MAX);
    timelines = calloc(count + 1, sizeof *timelines);
    if (timelines == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++)
        whole = timeline_init(&timelines[i], samples_max) && whole;
    if (whole && atomic_compare_exchange_strong(&meter->sampler.timelines, &none, timelines))
        return 0;
    free_timelines(timelines, count);
    return whole ? error_set(out_error, FLY_ESTATE, "the meter keeps samples already")
                 : error_no_memory(out_error);
}

size_t fly_meter_samples(struct fly_meter *meter, size_t device, double since_unix_s,
                         struct fly_sample *out_samples, size_t capacity)
{
    struct timeline *timelines = atomic_load(&meter->sampler.timelines);

    if (timelines == NULL || device >= meter->devices->count || check(meter, NULL) < 0)
        return 0;
    return timeline_copy(&timelines[device], since_unix_s, out_samples, capacity);
}

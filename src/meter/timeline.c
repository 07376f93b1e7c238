/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/timeline.h"

#include <math.h>
#include <stdlib.h>

bool timeline_init(struct timeline *timeline, size_t capacity)
{
    *timeline =
        (struct timeline){.samples = calloc(capacity, sizeof timeline->samples[0]), .capacity = capacity};
    pthread_mutex_init(&timeline->lock, NULL);
    return timeline->samples != NULL;
}

void timeline_deinit(struct timeline *timeline)
{
    free(timeline->samples);
    timeline->samples = NULL;
}

void timeline_add(struct timeline *timeline, const struct fly_sample *sample)
{
    pthread_mutex_lock(&timeline->lock);
    timeline->samples[timeline->taken++ % timeline->capacity] = *sample;
    pthread_mutex_unlock(&timeline->lock);
}

size_t timeline_copy(struct timeline *timeline, double since_unix_s, struct fly_sample *out_samples,
                     size_t capacity)
{
    uint64_t first, kept;
    size_t count;

    pthread_mutex_lock(&timeline->lock);
    kept = timeline->taken < timeline->capacity ? timeline->taken : timeline->capacity;
    first = timeline->taken;
    while (first > timeline->taken - kept &&
           timeline->samples[(first - 1) % timeline->capacity].unix_s >= since_unix_s)
        first--;
    count = (size_t)(timeline->taken - first);
    for (size_t i = 0; i < count && i < capacity; i++)
        out_samples[i] = timeline->samples[(first + i) % timeline->capacity];
    pthread_mutex_unlock(&timeline->lock);
    return count;
}

static double value_of(const struct device_reading *reading, enum quantity quantity, double scale)
{
    const struct reading *value = &reading->values[quantity];

    return value->state == READING_OK ? (double)value->value * scale : NAN;
}

struct fly_sample timeline_sample(const struct device_reading *reading, const struct clock *clock)
{
    struct wall_time date = clock->date(clock->state);
    double age_s = mono_elapsed_s(mono_middle(reading->before, reading->after), clock->now(clock->state));

    return (struct fly_sample){
        .unix_s = (double)date.ns * 1e-9 - age_s,
        .power_w = value_of(reading, QUANTITY_POWER_INSTANT, 1e-3),
        .power_average_w = value_of(reading, QUANTITY_POWER_AVERAGE, 1e-3),
        .energy_j = value_of(reading, QUANTITY_ENERGY, 1e-6),
        .temperature_c = value_of(reading, QUANTITY_TEMPERATURE, 1.0),
    };
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TIMELINE_H
#define FLYBALL_METER_TIMELINE_H

#include <pthread.h>

#include <flyball/meter.h>

#include "device/device.h"

/*
 * The newest samples of one device, in the order in which they were taken. Thread-safe; allocates at init
 * only.
 */
struct timeline {
    pthread_mutex_t lock;
    struct fly_sample *samples; /* sample n stands at n % capacity */
    size_t capacity;
    uint64_t taken;
};

/* Returns false without memory. */
bool timeline_init(struct timeline *timeline, size_t capacity);
void timeline_deinit(struct timeline *timeline);

void timeline_add(struct timeline *timeline, const struct fly_sample *sample);

/*
 * Copies up to `capacity` of the samples that are kept and were taken at that date or later, oldest first;
 * returns how many such samples there are.
 */
size_t timeline_copy(struct timeline *timeline, double since_unix_s, struct fly_sample *out_samples,
                     size_t capacity);

/* Returns a reading as a sample; the date is that of the middle of the reading. */
struct fly_sample timeline_sample(const struct device_reading *reading, const struct clock *clock);

#endif

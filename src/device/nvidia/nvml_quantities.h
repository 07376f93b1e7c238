/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_QUANTITIES_H
#define FLYBALL_DEVICE_NVIDIA_NVML_QUANTITIES_H

#include <stdbool.h>
#include <stdint.h>

#include "device/nvidia/nvml_library.h"
#include "device/nvidia/sensor_facts.h"
#include "device/quantity.h"

/*
 * How each quantity is read from an NVIDIA GPU.
 *
 * There may be several ways to read a quantity, by a function of its own or as a field of
 * nvmlDeviceGetFieldValues, newer and older; boards and drivers offer different ones. Opening
 * finds out once which way works. Readings then make one call for each function and one for all
 * fields together, and none for what the device does not offer.
 */

struct nvml_way {
    enum quantity quantity;
    /* Reads up to two values at once; returns a code of NVML. NULL: the way is a field. */
    int (*ask)(const struct nvml_calls *call, struct nvml_device *device, int64_t out_values[2]);
    unsigned value; /* which of the two values */
    unsigned field, scope;
    int64_t factor;                 /* from the driver's unit to the quantity's */
    enum power_usage_kind only_for; /* nvmlDeviceGetPowerUsage has different meanings on different chips */
};

/* For one device: the way to each quantity, or NULL and why there is none. */
struct nvml_ways {
    const struct nvml_way *to[QUANTITY_COUNT];
    struct reading absent[QUANTITY_COUNT];
};

/* Tries the ways of all quantities on a device of that chip. */
void nvml_ways_find(const struct nvml_calls *call, struct nvml_device *device, const struct gpu_chip *chip,
                    struct nvml_ways *out_ways);

/* Reads what is wanted. Thread-safe, allocates nothing. */
void nvml_ways_read(const struct nvml_ways *ways, const struct nvml_calls *call, struct nvml_device *device,
                    quantity_set wanted, struct reading *values);

/* Returns the state of a reading that a code of NVML gives. */
enum reading_state nvml_reading_state(int code);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_SET_H
#define FLYBALL_DEVICE_NVIDIA_NVML_SET_H

#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "device/nvidia/nvml_library.h"

/* Sets limits, modes and clocks through NVML. Codes are those of NVML. Thread-safe, allocates nothing. */

/*
 * Gives the clocks to which the GPU can be held at its highest memory clock, in MHz, highest
 * first, each once; at most `maximum`. NVML_NO_DATA if there are none.
 */
int nvml_clocks_read(const struct nvml_calls *call, struct nvml_device *handle, int64_t *clocks_mhz,
                     size_t maximum, size_t *out_count);

/* Gives the clocks of its memory in the same way. */
int nvml_memory_clocks_read(const struct nvml_calls *call, struct nvml_device *handle, int64_t *clocks_mhz,
                            size_t maximum, size_t *out_count);

/*
 * Sets a quantity, whose value was checked already. A ceiling on the clock locks the clocks
 * between the GPU's lowest and the ceiling, so that it idles as before; a ceiling of 0 lifts the
 * lock.
 */
int nvml_set_value(const struct nvml_calls *call, struct nvml_device *handle, enum quantity quantity,
                   int64_t value);

/*
 * Holds the GPU's or the memory's clock between two that were checked already; a floor of 0 is the lowest
 * clock, and a ceiling of 0 frees the clock.
 */
int nvml_hold(const struct nvml_calls *call, struct nvml_device *handle, enum quantity quantity,
              int64_t floor_mhz, int64_t ceiling_mhz);

/*
 * Writes why the driver refused, and what to do; returns the error's code. `floor_mhz` of a clock; 0: none.
 */
int nvml_set_error(const struct device_info *info, enum quantity quantity, int64_t value, int64_t floor_mhz,
                   int code, struct fly_error *out_error);

#endif

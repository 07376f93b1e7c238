/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_PROCESSES_H
#define FLYBALL_DEVICE_NVIDIA_NVML_PROCESSES_H

#include "device/device.h"
#include "device/nvidia/nvml_library.h"

/*
 * What device_processes, device_use and device_division say of an NVIDIA GPU, in any of the driver's layouts.
 * Thread-safe. Lists and samples allocate only where there are more than DEVICE_PROCESSES_AT_ONCE.
 */
int nvml_processes_read(const struct nvml_calls *call, struct nvml_device *device, unsigned kinds,
                        struct device_process *processes, size_t maximum, size_t *out_count);

enum reading_state nvml_use_read(const struct nvml_calls *call, struct nvml_device *device, int64_t since_us,
                                 struct device_use_sample *samples, size_t maximum, size_t *out_count);

enum reading_state nvml_division_read(const struct nvml_calls *call, struct nvml_device *device,
                                      struct device_division *out_division);

#endif

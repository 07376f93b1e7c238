/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_PROCESSES_H
#define FLYBALL_DEVICE_NVIDIA_NVML_PROCESSES_H

#include "device/device.h"
#include "device/nvidia/nvml_library.h"

/*
 * Lists the processes that compute on a GPU, at most `maximum`, in any of the driver's layouts.
 * FLY_EUNSUPPORTED, FLY_EPERM, FLY_EREAD, FLY_ENOMEM. Allocates while it runs. Thread-safe.
 */
int nvml_processes_read(const struct nvml_calls *call, struct nvml_device *device,
                        struct device_process *processes, size_t maximum, size_t *out_count);

#endif

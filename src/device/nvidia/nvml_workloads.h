/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_WORKLOADS_H
#define FLYBALL_DEVICE_NVIDIA_NVML_WORKLOADS_H

#include "device/device.h"
#include "device/nvidia/nvml_library.h"

/* Workload power profiles through NVML. Codes are those of NVML. Thread-safe, allocates nothing. */

int nvml_workloads_read(const struct nvml_calls *call, struct nvml_device *handle,
                        struct workloads *out_workloads);

/*
 * Requests exactly the wanted profiles: in one call where library and driver have the function of version
 * 13.1; else by one that adds and one that takes away, and if the second fails the first is undone as far as
 * the driver lets.
 */
int nvml_workloads_request(const struct nvml_calls *call, struct nvml_device *handle,
                           const struct workload_set *wanted);

/* Writes why the driver refused, and what to do; returns the error's code. */
int nvml_workloads_error(const struct device_info *info, const struct workload_set *wanted, int code,
                         struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_BACKEND_H
#define FLYBALL_DEVICE_BACKEND_H

#include "device/device.h"

/* The back ends, each in a file of its own in a room of device/; open/backends.c has the array of all. */
extern const struct device_backend device_backend_amdsmi;
extern const struct device_backend device_backend_cpu_estimate;
extern const struct device_backend device_backend_nvml;
extern const struct device_backend device_backend_rapl_perf;
extern const struct device_backend device_backend_rapl_powercap;
extern const struct device_backend device_backend_replay;

#endif

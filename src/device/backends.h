/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_BACKENDS_H
#define FLYBALL_DEVICE_BACKENDS_H

#include "device/device.h"

/* Each in a file of its own, device/NAME*.c; `device_backends` holds them all. */
extern const struct device_backend device_backend_amdsmi;
extern const struct device_backend device_backend_cpu_estimate;
extern const struct device_backend device_backend_nvml;
extern const struct device_backend device_backend_rapl_perf;
extern const struct device_backend device_backend_rapl_powercap;

#endif

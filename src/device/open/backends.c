/* SPDX-License-Identifier: Apache-2.0 */
/* All back ends, in the order in which they are opened. */
#include "device/backends.h"

const struct device_backend *const device_backends[] = {
    &device_backend_nvml,      &device_backend_amdsmi,       &device_backend_rapl_powercap,
    &device_backend_rapl_perf, &device_backend_cpu_estimate, NULL,
};

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_READ_H
#define FLYBALL_DEVICE_AMD_AMDSMI_READ_H

#include "device/amd/amdsmi_gpu.h"

/*
 * Fills in what is wanted, each value with a state. The caller must not hold the lock.
 * Thread-safe, allocates nothing.
 */
void amdsmi_gpu_read(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values);

#endif

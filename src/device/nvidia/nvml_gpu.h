/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_GPU_H
#define FLYBALL_DEVICE_NVIDIA_NVML_GPU_H

#include <flyball/error.h>

#include "device/device.h"
#include "device/nvidia/nvml_library.h"
#include "device/nvidia/nvml_quantities.h"

/*
 * One GPU of NVIDIA's driver, and how it is opened: who it is, and how each quantity is read. The calls may
 * take as long as the driver likes.
 */
struct nvml_state {
    struct nvml_library *library; /* borrowed here; a device in a list counts as one of its users */
    struct nvml_device *handle;   /* NULL: the driver gave none */
    struct nvml_ways ways;
};

/*
 * Opens the GPU of that number. One that cannot be opened is returned too: its readings say why. Returned
 * owned, to be freed; NULL without memory. Thread-safe for different GPUs.
 */
struct nvml_state *nvml_gpu_open(struct nvml_library *library, unsigned index, struct device_info *out_info);

/* Makes the GPU of that number without asking the driver, which has not answered; otherwise the same. */
struct nvml_state *nvml_gpu_silent(struct nvml_library *library, unsigned index,
                                   struct device_info *out_info);

/*
 * Opens the GPU at a PCI address, and asks the driver about no other. `out_state` is owned; untouched if
 * the driver has no GPU there, which is no error. FLY_EUNSUPPORTED for a driver without the function,
 * FLY_ENOMEM.
 */
int nvml_gpu_find(struct nvml_library *library, const char *pci, struct nvml_state **out_state,
                  struct device_info *out_info, struct fly_error *out_error);

#endif

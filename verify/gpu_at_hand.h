/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_VERIFY_GPU_AT_HAND_H
#define FLYBALL_VERIFY_GPU_AT_HAND_H

#include <flyball/meter.h>

#include "device/device.h"
#include "device/nvidia/nvml_library.h"

/*
 * One of NVIDIA's GPUs in two ways: by the driver's own functions, and by a meter. Nothing is ever set on it.
 *
 *     if (gpu_open(NULL, 0, &gpu, out_error) == 0 && gpu_open_meter(&gpu, out_error) == 0)
 *         ...
 *     gpu_close(&gpu);
 */
struct gpu_at_hand {
    const char *nvml_path; /* borrowed */
    unsigned index;
    struct nvml_library *nvml;
    struct nvml_device *device;
    char pci[NVML_PCI_BYTES]; /* "00000000:07:00.0" */
    struct device_list list;  /* the GPU alone, for the meter */
    struct fly_meter *meter;  /* NULL: not opened */
};

/* Opens the GPU of that index by the library at nvml_path (NULL: searched for). The errors of
 * nvml_library_open, and FLY_ENOTFOUND. Close it in any case. */
int gpu_open(const char *nvml_path, unsigned index, struct gpu_at_hand *out_gpu, struct fly_error *out_error);

/* Opens a meter of that GPU alone. The errors of fly_meter_open. */
int gpu_open_meter(struct gpu_at_hand *gpu, struct fly_error *out_error);

/* The driver's counter in J; NAN if it cannot be read. */
double gpu_counter_j(const struct gpu_at_hand *gpu);

void gpu_close(struct gpu_at_hand *gpu);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_APART_H
#define FLYBALL_DEVICE_NVIDIA_NVML_APART_H

#include "device/nvidia/nvml_gpu.h"

/*
 * Opens GPUs side by side, each by a thread of its own, for a program that must not wait for a GPU that
 * hangs in the driver.
 *
 *     struct nvml_apart apart;
 *
 *     code = nvml_apart_open(library, count, 3, &apart, out_error);
 *     ... use states and infos; NULL the states that are taken ...
 *     nvml_apart_deinit(&apart);
 *
 * A GPU that does not answer in time is there as nvml_gpu_silent makes it. Its thread is left behind
 * (base/thread/thread_group.h) and is one of the library's users until the driver lets it go. Meanwhile
 * that GPU is silent for everybody who opens it so, at once and without another thread. Thread-safe.
 */
struct nvml_apart {
    unsigned count;
    struct nvml_state *states[DEVICES_MAX]; /* owned */
    struct device_info infos[DEVICES_MAX];
};

/* FLY_ENOMEM; nothing need be freed then. */
int nvml_apart_open(struct nvml_library *library, unsigned count, double patience_s,
                    struct nvml_apart *out_apart, struct fly_error *out_error);

/* Frees what was not taken. */
void nvml_apart_deinit(struct nvml_apart *apart);

#endif

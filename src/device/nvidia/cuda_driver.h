/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_CUDA_DRIVER_H
#define FLYBALL_DEVICE_NVIDIA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Runs the kernel of device/nvidia/cuda_kernel.h on one GPU through NVIDIA's driver library,
 * loaded at run time, until it is told to end.
 *
 * If the driver hangs or crashes, so does the caller: call this in a process of its own, as
 * device/nvidia/cuda_load.h does.
 */
struct cuda_run {
    const char *library_path; /* NULL: libcuda.so.1, as the loader finds it */
    const char *pci;          /* of the GPU, "00000000:07:00.0" */
    /*
     * Asked between two launches, about 20 ms apart; false ends the run. The first time, the kernel
     * has run once. `steps` is the work done so far by all threads; the steps per second follow the
     * clock.
     */
    bool (*go_on)(void *data, uint64_t steps);
    void *data;
};

/*
 * Returns 0 when go_on ended it. FLY_EUNSUPPORTED if there is no driver library, CUDA has no such
 * GPU, or the driver compiles no variant of the kernel; FLY_EREAD if a call of the driver failed,
 * with its name and code.
 */
int cuda_run(const struct cuda_run *run, struct fly_error *out_error);

#endif

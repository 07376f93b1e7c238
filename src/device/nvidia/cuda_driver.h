/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_CUDA_DRIVER_H
#define FLYBALL_DEVICE_NVIDIA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Runs the kernel of device/nvidia/cuda_kernel.h on one GPU through NVIDIA's driver
 * library, loaded at run time, for as long as it is told to.
 *
 * A driver that hangs or crashes takes the caller along: call this in a process
 * of its own, as device/nvidia/cuda_load.h does.
 */
struct cuda_run {
    const char *library_path; /* NULL: libcuda.so.1, where the loader finds it */
    const char *pci;          /* of the GPU, "00000000:07:00.0" */
    /* Asked between two launches, some 20 ms apart; false ends the run. The first time, the kernel has run
     * once.
     * `steps` is the work done so far, of every thread: how much of it there is in a second follows the
     * clock.
     */
    bool (*go_on)(void *data, uint64_t steps);
    void *data;
};

/*
 * Returns 0 when it was told to end. FLY_EUNSUPPORTED where there is no driver
 * library, no such GPU for CUDA, or the driver compiles no variant of the kernel;
 * FLY_EREAD where a call of the driver failed, with its name and code.
 */
int cuda_run(const struct cuda_run *run, struct fly_error *out_error);

#endif

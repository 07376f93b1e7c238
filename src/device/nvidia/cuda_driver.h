/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_CUDA_DRIVER_H
#define FLYBALL_DEVICE_NVIDIA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * A kernel that makes a GPU draw power, as PTX: text that the driver itself compiles for any GPU,
 * so that no toolkit is needed.
 *
 * Every thread walks eight independent orbits of x -> 1 - 1.9 x^2, one multiply and one fused
 * multiply-add a step. The map is chaotic, so that the operands' bits keep flipping (a sequence
 * that settles draws less power the longer it runs), and it stays within [-1, 1] for any number
 * of steps. The only memory traffic is one result per thread.
 *
 *     flyball_load(float *out, unsigned steps)      steps > 0, one out for each thread
 */
enum { CUDA_KERNEL_TEXT_MAX = 8192, CUDA_KERNEL_CHAINS = 8 };

extern const char cuda_kernel_name[]; /* "flyball_load" */

/*
 * Writes the text for the `variant`-th choice of language version and target, the most widely
 * understood one first: newer drivers may drop old targets, and old drivers do not know new ones.
 * Returns false after the last choice.
 */
bool cuda_kernel_text(size_t variant, char text[CUDA_KERNEL_TEXT_MAX]);

/*
 * Runs that kernel on one GPU through NVIDIA's driver library,
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

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_CUDA_KERNEL_H
#define FLYBALL_DEVICE_NVIDIA_CUDA_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

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

#endif

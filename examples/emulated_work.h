/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_EMULATED_WORK_H
#define FLYBALL_EXAMPLES_EMULATED_WORK_H

#include <stdint.h>

/*
 * Work for an emulated GPU, the first of CUDA_VISIBLE_DEVICES, in place of kernels on a real one: the load
 * and its duration follow the batch size and the power limit (model/gpu_model.h). A real network keeps a GPU
 * busy for longer than this example's would, so the time per sample is made up. EMULATED_PACE, if it is set,
 * is a factor on the speed.
 */
struct emulated_work;

/* Returns NULL when no emulator was started; the program then trains without load on a GPU. */
struct emulated_work *emulated_work_begin(void);

/* Does a step over `samples`; returns when it is done. */
void emulated_work_step(struct emulated_work *work, uint32_t samples);

/* Accepts NULL. */
void emulated_work_end(struct emulated_work *work);

#endif

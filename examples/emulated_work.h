/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_EMULATED_WORK_H
#define FLYBALL_EXAMPLES_EMULATED_WORK_H

#include <stdint.h>

/*
 * Work for an emulated GPU, the first of CUDA_VISIBLE_DEVICES, in the place of kernels on a real one: the
 * load, and the time that it takes, follow the batch size and the power limit (model/gpu_model.h). A whole
 * network keeps a GPU busy for longer than this example's would, so the time of a sample is made up;
 * EMULATED_PACE, if it is set, says how many times as fast it is done.
 */
struct emulated_work;

/* NULL where no emulator was started; the program then trains without load on a GPU. */
struct emulated_work *emulated_work_begin(void);

/* A step over `samples`; returns when it is done. */
void emulated_work_step(struct emulated_work *work, uint32_t samples);

/* Accepts NULL. */
void emulated_work_end(struct emulated_work *work);

#endif

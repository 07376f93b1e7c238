/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_EMULATED_WORK_H
#define FLYBALL_EXAMPLES_EMULATED_WORK_H

#include <stdint.h>

#include <flyball/export.h>

/*
 * Work for an emulated GPU in place of kernels on a real one: the load and its duration follow the batch size
 * and the power limit (model/gpu_model.h). A real network keeps a GPU busy for longer than these examples'
 * would, so the time per sample is made up. EMULATED_PACE, if it is set, is a factor on the speed.
 *
 * Programs in C link these functions, those in Python load them from a shared object. All calls come from
 * the thread that began the work.
 */
struct emulated_work;

/*
 * Begins on the GPU at that place of CUDA_VISIBLE_DEVICES, from 0. Returns NULL when no emulator was started;
 * the program then trains without load on a GPU.
 */
FLY_API struct emulated_work *emulated_work_begin(unsigned place);

/* Puts on the load of a step over `samples`. Returns the seconds that the step takes under the limit of now.
 */
FLY_API double emulated_work_load(struct emulated_work *work, uint32_t samples);

/* Does a step over `samples`; returns when it is done. Accepts NULL. */
FLY_API void emulated_work_step(struct emulated_work *work, uint32_t samples);

/* Accepts NULL. */
FLY_API void emulated_work_end(struct emulated_work *work);

#endif

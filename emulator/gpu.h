/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_GPU_H
#define FLYBALL_EMULATOR_GPU_H

#include "emulator/boards.h"
#include "emulator/state.h"
#include "model/gpu_model.h"

/*
 * What an emulated GPU does: its loads, its limit and its clocks determine the power that it approaches. The
 * caller holds the state's lock.
 *
 * Loads add up above idle, up to what the board can want, D. Power and clock are those of the model in
 * model/gpu_model.h under the limit that is enforced, the locked clock and heat. A regulator brings the board
 * there: after a load began or a limit was lowered the power is above the limit for a while, and the clock is
 * that of the power (history.h). Workload power profiles lower the dynamic part of
 * D and slow the work (workload_profiles.h).
 */

enum { GPU_CLOCK_STEP_MHZ = 15 }; /* between the graphics clocks of a board, from the highest down */

void gpu_init(struct emulated_gpu *gpu, unsigned index, const struct emulator_settings *settings,
              const struct gpu_shape *shape, int64_t now_ns);

/* The limit that holds: the one that was asked for, or the highest that is enforced. */
unsigned gpu_enforced_mw(const struct emulated_gpu *gpu);

/* The lowest and the highest limit that the driver takes now. */
unsigned gpu_lowest_mw(const struct emulated_gpu *gpu);
unsigned gpu_highest_mw(const struct emulated_gpu *gpu);

/* A lost GPU is there again, as its driver starts it: with the default limit, and no clock locked. */
void gpu_reload(struct emulated_gpu *gpu, int64_t now_ns);

/*
 * Brings the history up to `now_ns`: planned loads begin, and the work of processes that died ends. Call it
 * before any question about a GPU. Returns the moment that the GPU is at: `now_ns`, or a later one that it
 * was at already.
 */
int64_t gpu_settle(struct emulated_gpu *gpu, int64_t now_ns);

/* Begins a segment with the current load, limit and clocks; call it after each change of them. */
void gpu_changed(struct emulated_gpu *gpu, int64_t at_ns);

const struct emulated_board *gpu_board(const struct emulated_gpu *gpu);
const struct gpu_shape *gpu_shape_of(const struct emulated_gpu *gpu);

/* Plans a load of the control interface; false when EMULATOR_PLANNED_MAX loads wait. */
bool gpu_plan(struct emulated_gpu *gpu, int64_t at_ns, const struct emulator_load *load);

/* Takes a slot for the calling process's work; -1 when all are taken. The thread that took it must end it. */
int gpu_work_begin(struct emulated_gpu *gpu, int64_t now_ns, const struct emulator_role *role,
                   const struct emulator_load *load);
void gpu_work_change(struct emulated_gpu *gpu, int slot, int64_t now_ns, const struct emulator_load *load);
void gpu_work_end(struct emulated_gpu *gpu, int slot, int64_t now_ns);

/*
 * Brings the samples of use up to `now_ns`; and gives the accounts as they are then, of which the GPU itself
 * has those up to the last change.
 */
void gpu_use_up_to(struct emulated_gpu *gpu, int64_t now_ns);
void gpu_accounts_at(const struct emulated_gpu *gpu, int64_t now_ns, struct emulator_accounts *out_accounts);

/* Memory that loads use. */
uint64_t gpu_memory_used(const struct emulated_gpu *gpu);

/*
 * The clock at a moment, relative to the highest, and by how much it stretches the time of the current
 * load: 1 or more.
 */
double gpu_speed(const struct emulated_gpu *gpu, int64_t now_ns);
double gpu_slowdown(const struct emulated_gpu *gpu, int64_t now_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_ALTERED_H
#define FLYBALL_SIM_WORLD_ALTERED_H

#include "base/arena.h"
#include "base/error.h"
#include "sim/world/workload.h"

/*
 * Workloads made harder than they were recorded, to test how policies cope. Nothing of it was
 * measured. What is drawn follows from the job's name alone, so that policies, seeds and GPUs meet
 * the same job; U(a, b) is uniform and z standard normal.
 *
 * Both functions change a shallow copy of a workload, whose new lists live in `arena`; never close
 * the copy. FLY_ENOMEM.
 */

/*
 * Lets the larger batch sizes not fit into the GPU: from one on that lies above the default, each
 * of those as likely. A trial there ends at once, out of memory, and no run reaches the target. All
 * fit if the default is the largest.
 */
int altered_memory(struct workload *workload, struct arena *arena, struct fly_error *out_error);

/*
 * Lets the job depend on a learning rate that was tuned for the default: d octaves away from it, every
 * recorded run takes exp(a |d| + 0.1 z) times its epochs, rounded to whole ones, at least 1. `a` is
 * U(0, 0.35), drawn for the larger and the smaller batch sizes apart, and z for each batch size.
 */
int altered_learning_rate(struct workload *workload, struct arena *arena, struct fly_error *out_error);

#endif

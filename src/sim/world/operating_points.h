/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_OPERATING_POINTS_H
#define FLYBALL_SIM_WORLD_OPERATING_POINTS_H

#include "model/batch_points.h"
#include "sim/world/workload.h"

/*
 * The operating points of a workload: the expected epochs of oracle.h times the figures of one epoch. These
 * are expectations over the recorded runs, with one measurement of time and power for each point.
 */

/* Computes them in memory of `arena`. FLY_ENOMEM. */
int operating_points_of(const struct workload *workload, struct arena *arena,
                        struct operating_points *out_points, struct fly_error *out_error);

/* "none of its recorded runs reaches the target": a clause for people. */
const char *left_out_text(enum left_out_reason reason);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_OPERATING_POINTS_H
#define FLYBALL_SIM_WORLD_OPERATING_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/operating_point.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/world/workload.h"

/*
 * Every (batch size, power limit) of a workload with the expected time and energy of training to
 * the target: the expected epochs of oracle.h times the figures of one epoch. These are
 * expectations over the recorded runs, with one measurement of time and power for each point.
 *
 * A batch size whose figures cannot be known has no points and is listed in `left_out`.
 */
enum left_out_reason {
    LEFT_OUT_UNPOWERED, /* the power file has no row of it */
    LEFT_OUT_UNREACHED, /* no recorded run reaches the target */
    LEFT_OUT_UNBOUNDED, /* time or energy leaves the range of numbers at some limit */
    LEFT_OUT_REASON_COUNT
};

struct left_out {
    uint32_t batch_size;
    enum left_out_reason reason;
};

struct operating_points {
    struct fly_operating_point *points; /* fastest first; then least energy, lowest limit, smallest batch */
    bool *on_frontier;                  /* of each point */
    size_t count;                       /* may be 0 */
    size_t default_point;               /* default batch size, highest limit; `count` if it is not known */
    const struct left_out *left_out;    /* ascending batch sizes */
    size_t left_out_count;
};

/* Computes them in memory of `arena`. FLY_ENOMEM. */
int operating_points_of(const struct workload *workload, struct arena *arena,
                        struct operating_points *out_points, struct fly_error *out_error);

/* "none of its recorded runs reaches the target": a clause for people. */
const char *left_out_text(enum left_out_reason reason);

#endif

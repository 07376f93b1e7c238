/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_BATCH_POINTS_H
#define FLYBALL_MODEL_BATCH_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/operating_point.h>
#include <flyball/power_profile.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Every (batch size, power limit) of a job with the expected time and energy of training to the target: what
 * an epoch takes, times the epochs that a model takes.
 *
 * A batch size whose figures cannot be known has no points and is listed in `left_out`.
 */
enum left_out_reason {
    LEFT_OUT_UNPOWERED, /* what an epoch of it takes is not known */
    LEFT_OUT_UNREACHED, /* it never reached the target */
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

/* What makes the points of one batch size. */
struct batch_figures {
    uint32_t batch_size;
    const struct fly_power_point *points; /* of an epoch */
    size_t point_count;
    double epochs;  /* that a model takes; infinity: the target was never reached */
    bool unpowered; /* leave it out as LEFT_OUT_UNPOWERED, whatever else is known */
};

/*
 * Computes them in memory of `arena`; the default is `reference.batch_size` at `reference.power_limit_w`.
 * FLY_ENOMEM.
 */
int batch_points_of(const struct batch_figures *batches, size_t count, struct fly_operating_point reference,
                    struct arena *arena, struct operating_points *out_points, struct fly_error *out_error);

#endif

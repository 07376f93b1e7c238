/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_ENERGY_SLICE_H
#define FLYBALL_MODEL_ENERGY_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The energy of a stretch of time under one power limit, as it is written down while it
 * is used: cut at every fifth minute of UTC, which all usual periods of the grid's figures
 * are made of, and at every change of the limit.
 *
 * Its length is monotonic time. Where the machine's clock jumped within it, its end is what
 * the clock said after the jump, and its start follows from the length; so slices may overlap
 * or leave a gap in UTC, and no energy counts twice. A value type.
 */
enum { ENERGY_SLICE_BORDER_S = 300 };

struct energy_slice {
    double start_s, end_s; /* since 1970, UTC; end_s > start_s */
    double gpu_j;          /* of all GPUs of the rank; NAN: not known */
    double host_j;         /* CPU and memory, as far as they were measured; NAN: not measured */
    double limit_w;        /* that stood; NAN: not known, or it is not ours */
    double steps;          /* of training that began in it; 0 where nobody counts */
    bool jumped;           /* the clock did, within it */
};

#endif

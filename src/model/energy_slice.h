/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_ENERGY_SLICE_H
#define FLYBALL_MODEL_ENERGY_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The energy that a rank uses in a stretch of time under one power limit. A slice is written down
 * while it is used. Slices are cut at every fifth minute of UTC, since all usual periods of grid
 * figures are multiples of five minutes, and at every change of the limit.
 *
 * The length of a slice is monotonic time. If the machine's clock jumped within the slice,
 * `end_s` is what the clock said after the jump, and `start_s` is `end_s` less the length. So
 * slices may overlap or leave a gap in UTC, but no energy counts twice. A value type.
 */
enum { ENERGY_SLICE_BORDER_S = 300 };

struct energy_slice {
    double start_s, end_s; /* since 1970, UTC; end_s > start_s */
    double gpu_j;          /* of all GPUs of the rank; NAN: unknown */
    double host_j;         /* of CPU and memory, as far as measured; NAN: not measured */
    double limit_w;        /* the limit in force; NAN: unknown, or not set by Flyball */
    double steps;          /* training steps that began in the slice; 0 if nobody counts them */
    bool jumped;           /* the machine's clock jumped within the slice */
};

#endif

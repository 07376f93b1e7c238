/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_OPERATING_POINT_H
#define FLYBALL_OPERATING_POINT_H

#include <stdint.h>

/*
 * One choice of the two knobs and what it takes to train to the target with it.
 * A value type: its layout never changes within a major version.
 */
struct fly_operating_point {
    uint32_t batch_size;  /* global, over all ranks */
    double power_limit_w; /* per GPU */
    double time_s;        /* wall time to the target */
    double energy_j;      /* of all GPUs, to the target */
};

#endif

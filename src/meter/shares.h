/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SHARES_H
#define FLYBALL_METER_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/*
 * How long a device was idle, capped by its limit, hot, braked, or held by a clock setting:
 * totals since the first sample, each with the time for which the answer was known. Plain values,
 * no locks.
 */
struct shares {
    double idle_s, idle_known_s;
    double idle_j, idle_known_j;
    double capped_s, heat_s, brake_s, held_s, throttle_known_s;
    double clocks_mhz; /* sum of the clocks that were read; not every sample reads one */
    uint64_t clock_samples;
    uint64_t samples;
};

/* Counts a sample for the `elapsed_s` before it, in which `energy_j` (NAN: unknown) was drawn. */
void shares_take(struct shares *shares, const struct reading *values, double elapsed_s, double energy_j);

#endif

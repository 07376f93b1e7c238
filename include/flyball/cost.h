/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COST_H
#define FLYBALL_COST_H

#include <flyball/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The energy-time cost of a training run, in joules; people read it as a score without a unit:
 *
 *     eta * energy_j + (1 - eta) * max_power_w * time_s
 *
 * (You et al., NSDI '23, section 3.2). eta 0 counts time alone, eta 1 energy
 * alone; max_power_w turns seconds into the joules that the GPUs could at most
 * have used in them.
 *
 * eta          0 .. 1
 * max_power_w  sum of the GPUs' highest power limits, > 0
 * energy_j     of all GPUs, >= 0
 * time_s       >= 0
 *
 * Evaluated in the order written, so that equal inputs give equal bits.
 * Monotone in energy and time. Pure; thread-safe.
 */
FLY_API double fly_cost(double eta, double max_power_w, double energy_j, double time_s);

#ifdef __cplusplus
}
#endif

#endif

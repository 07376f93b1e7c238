/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_POWER_POLICY_H
#define FLYBALL_POLICY_POWER_POLICY_H

#include <stddef.h>

#include <flyball/power_profile.h>

#include "base/error.h"

/*
 * A power-limit policy decides which limit a batch size gets once its profile is known. It is
 * pure and has no state: the same profile gives the same choice anywhere. Any number of threads
 * may ask.
 */
struct power_policy {
    const char *name;

    /*
     * Gives the index of the chosen one of `count` points, which may come in any order. `max_power_w`
     * is the weight of time, as in flyball/cost.h. FLY_EUSAGE or FLY_EDATA for an unusable profile.
     */
    int (*choose)(const struct power_policy *self, const struct fly_power_point *points, size_t count,
                  double eta, double max_power_w, size_t *out_index, struct fly_error *out_error);
};

extern const struct power_policy
    power_policy_cost; /* least cost per epoch; used unless another is asked for */

#endif

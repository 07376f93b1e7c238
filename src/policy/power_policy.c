/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/power_policy.h"

#include <math.h>

#include <flyball/power_selector.h>

static int cost_choose(const struct power_policy *self, const struct fly_power_point *points, size_t count,
                       double eta, double max_power_w, size_t *out_index, struct fly_error *out_error)
{
    const struct fly_objective objective = {.kind = FLY_OBJECTIVE_COST, .eta = eta, .max_slowdown = INFINITY};

    (void)self;
    return fly_power_select(points, count, &objective, max_power_w, out_index, out_error);
}

const struct power_policy power_policy_cost = {.name = "cost", .choose = cost_choose};

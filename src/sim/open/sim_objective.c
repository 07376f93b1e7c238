/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_objective.h"

#include <math.h>
#include <stdbool.h>

double sim_objective_bound(const struct job_spec *spec)
{
    return spec->objective != NULL ? spec->objective->max_slowdown : INFINITY;
}

void sim_objective_set(const struct fly_objective *objective, struct workload *workloads, size_t count)
{
    bool eta_says_all = objective->kind == FLY_OBJECTIVE_COST && isinf(objective->max_slowdown);

    for (size_t i = 0; i < count; i++) {
        workloads[i].spec.objective = eta_says_all ? NULL : objective;
        workloads[i].spec.eta = objective_eta(objective);
    }
}

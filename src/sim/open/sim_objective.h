/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_OBJECTIVE_H
#define FLYBALL_SIM_OPEN_SIM_OBJECTIVE_H

#include <stddef.h>

#include <flyball/objective.h>

#include "sim/world/workload.h"

/* What simulated jobs make small, and within which bound. */

/* Gives it to jobs, which borrow it. Where eta says all, they have no objective besides it. */
void sim_objective_set(const struct fly_objective *objective, struct workload *workloads, size_t count);

/* Returns the bound on a job's slowdown, as a factor; infinite for none. */
double sim_objective_bound(const struct job_spec *spec);

#endif

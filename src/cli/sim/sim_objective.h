/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_OBJECTIVE_H
#define FLYBALL_CLI_SIM_SIM_OBJECTIVE_H

#include <flyball/objective.h>

#include "cli/frame/call.h"
#include "sim/world/workload.h"

/*
 * What simulated jobs make small, and within which bound: --objective, --max-slowdown and --eta,
 * which is another spelling of --objective cost:ETA.
 */

/* Reads the options. FLY_EUSAGE. */
int sim_objective_read(const struct cli_call *call, struct fly_objective *out_objective,
                       struct fly_error *out_error);

/* Gives it to jobs, which borrow it. Where eta says all, they have no objective besides it. */
void sim_objective_set(const struct fly_objective *objective, struct workload *workloads, size_t count);

/* Returns the bound on a job's slowdown, as a factor; infinite for none. */
double sim_objective_bound(const struct job_spec *spec);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_WORKLOADS_H
#define FLYBALL_CLI_SIM_SIM_WORKLOADS_H

#include "cli/frame/call.h"
#include "sim/open/sim_set.h"

/*
 * The workloads that a simulation command is asked for, selected from its traces by the options
 * --traces, --gpu, --jobs, --workload, and those that describe one job. With `all`, jobs that the
 * traces do not have are left out with a note. Call sim_set_close only after success.
 */
int sim_workloads_open(struct sim_set *set, const struct cli_call *call, struct fly_error *out_error);

/* The same for a command that has several GPUs: `gpu` takes the place of --gpu. */
int sim_workloads_open_of(struct sim_set *set, const struct cli_call *call, const char *gpu,
                          struct fly_error *out_error);

/* Only traces and job file, for commands that name workloads in another way (sim_set_add). */
int sim_workloads_open_traces(struct sim_set *set, const struct cli_call *call, struct fly_error *out_error);

#endif

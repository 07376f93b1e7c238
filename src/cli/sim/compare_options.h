/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_COMPARE_OPTIONS_H
#define FLYBALL_CLI_SIM_COMPARE_OPTIONS_H

#include "cli/frame/call.h"
#include "sim/open/compare_jobs.h"

/*
 * The jobs of `flyball sim compare`: those of the traces on every GPU, then `synthetic` jobs of each kind.
 * With `each`, every job is a set too. Options read: --traces, --gpu and those of sim_workloads_open;
 * --synthetic;
 * --eta. Call compare_jobs_close only after success.
 */
int compare_options_open(struct compare_jobs *jobs, const struct cli_call *call, uint32_t synthetic,
                         bool each, struct fly_error *out_error);

#endif

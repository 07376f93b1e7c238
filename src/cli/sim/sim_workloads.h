/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_WORKLOADS_H
#define FLYBALL_CLI_SIM_SIM_WORKLOADS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/frame/call.h"
#include "cli/sim/job_list.h"
#include "sim/world/trace.h"
#include "sim/world/workload.h"

/*
 * The workloads that a simulation command is asked for, selected from its traces by the options
 * --traces, --gpu, --jobs, --workload, and those that describe one job. With `all`, jobs that the
 * traces do not have are left out with a note.
 */
struct sim_workloads {
    struct job_list list;
    struct trace trace;
    bool trace_is_open;
    struct workload items[JOB_LIST_MAX];
    size_t count;
};

/* Call sim_workloads_close only after success. */
int sim_workloads_open(struct sim_workloads *set, const struct cli_call *call, struct fly_error *out_error);

/* The same for a command that has several GPUs: `gpu` takes the place of --gpu. */
int sim_workloads_open_of(struct sim_workloads *set, const struct cli_call *call, const char *gpu,
                          struct fly_error *out_error);

/*
 * The same in two steps, for commands that name workloads in another way: first traces and job
 * file, then one workload after another by its job.
 */
int sim_workloads_open_traces(struct sim_workloads *set, const struct cli_call *call,
                              struct fly_error *out_error);
int sim_workloads_add(struct sim_workloads *set, const struct cli_call *call,
                      const struct job_description *job, struct fly_error *out_error);

void sim_workloads_close(struct sim_workloads *set);

#endif

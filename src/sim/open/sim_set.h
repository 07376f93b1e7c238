/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_SET_H
#define FLYBALL_SIM_OPEN_SIM_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/world/drift.h"
#include "sim/world/job_list.h"
#include "sim/world/trace.h"
#include "sim/world/workload.h"

/*
 * The workloads of a simulation: jobs selected from the traces of one GPU.
 *
 *     sim_set_init(&set);
 *     ... job_list_add to set.list; set.eta, set.note ...
 *     code = sim_set_traces(&set, directory, gpu, out_error);
 *     if (code == 0)
 *         code = sim_set_add_all(&set, out_error);
 *     sim_set_close(&set);
 */
struct sim_set {
    struct job_list list; /* the jobs that can be selected */
    struct trace trace;
    bool trace_is_open;
    struct workload items[JOB_LIST_MAX];
    size_t count;
    double eta; /* of the workloads that are added from now on; 0.5 */
    /* Takes remarks for the user about what is left out; NULL: nobody does. */
    void (*note)(const void *context, const char *text);
    const void *note_context;
    const char *describe; /* how a user describes a job, for an error's text */
};

/* Fills in the paper's jobs; nothing can fail. Call sim_set_close afterwards, whatever else fails. */
void sim_set_init(struct sim_set *set);
void sim_set_close(struct sim_set *set);

/* Opens the traces; errors as trace_open. */
int sim_set_traces(struct sim_set *set, const char *directory, const char *gpu, struct fly_error *out_error);

/* Adds one job, with a note of its batch sizes that are left out; errors as workload_open. */
int sim_set_add(struct sim_set *set, const struct job_description *job, struct fly_error *out_error);

/* Adds all jobs that the traces have, with a note of the others. FLY_ENOTFOUND if they have none. */
int sim_set_add_all(struct sim_set *set, struct fly_error *out_error);

/* FLY_EUNSUPPORTED if a job cannot be repeated in the order in which it was recorded: its trace lacks words.
 */
int sim_set_check_order(const struct sim_set *set, struct fly_error *out_error);

/*
 * Where the epochs of all batch sizes grow, raises the greatest number of epochs of each job with them, or no
 * try could reach its target. 0 recurrences are those published for each job. Returns whether it raised any.
 */
bool sim_set_allow_for_drift(struct sim_set *set, enum drift_kind drift, uint64_t recurrences);

#endif

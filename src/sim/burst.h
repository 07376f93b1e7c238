/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_BURST_H
#define FLYBALL_SIM_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/overlapping.h"
#include "sim/recurring.h"

/*
 * A recurring job that is submitted in bursts: so many recurrences start together and end
 * together, and the next burst starts when all of them have reached their target.
 *
 *     burst_init(&job, &workload, policy, &parameters, out_error);
 *     while (...)
 *         burst_run(&job, 8, recurrences, out_error);
 *     burst_deinit(&job);
 *
 * The decision core decides the recurrences of a burst one after the other, each before any of
 * them has ended (overlapping.h). Those that miss their target are tried again together, up to
 * RECURRING_TRIES_MAX times. A recurrence's draws are those of recurring.h.
 */
enum { BURST_MAX = 16 };

struct burst {
    struct overlapping job;
    uint64_t first; /* recurrence of the burst that runs */
    struct recurrence sums[BURST_MAX];
    bool reached[BURST_MAX];
    recurring_observer *observer; /* NULL: none */
    void *observer_context;
    double now_s;
};

/* As recurring_init. The struct must not be moved. Call burst_deinit only after success. */
int burst_init(struct burst *burst, const struct workload *workload, const struct batch_policy *policy,
               const struct policy_parameters *parameters, struct fly_error *out_error);
void burst_deinit(struct burst *burst);

/*
 * Runs the next burst of 1 .. BURST_MAX recurrences, and leaves their sums in `sums`.
 * FLY_EEXHAUSTED if the job ends before all have reached their target; `reached` tells which have.
 */
int burst_run(struct burst *burst, size_t size, struct fly_error *out_error);

#endif

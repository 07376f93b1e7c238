/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_TRIAL_H
#define FLYBALL_SIM_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/decider.h"
#include "sim/world/environment.h"

/*
 * One trial in the simulated world: the decision core proposes it, its profile is measured if
 * needed, a recorded run is drawn, and the trace says how the trial ends. The caller must then
 * tell the decider of the end (trial_fold).
 *
 * A trial that may not run one epoch has been refused (TRIAL_REFUSED). It has cost nothing, or its
 * profile alone if that was measured in a window of its own (environment.h). One whose batch size
 * does not fit into the GPU ends at once, out of memory, and costs nothing.
 */
struct trial {
    struct fly_trial ended;
    uint32_t path; /* index among the batch size's recorded runs */
};

/* Runs it. `recurrence` and `try_number` key the draw. Errors as decider_propose and decider_fold. */
int trial_run(struct decider *decider, struct environment *environment, uint64_t recurrence,
              uint32_t try_number, struct trial *out_trial, struct fly_error *out_error);

/* Tells the decider of its end, and of batch sizes that do not fit. Errors as decider_fold. */
int trial_fold(struct decider *decider, struct environment *environment, const struct fly_trial *ended,
               struct fly_error *out_error);

/* Returns whether something ran, so that the trial is one of the job's tries. */
bool trial_ran(const struct fly_trial *ended);

#endif

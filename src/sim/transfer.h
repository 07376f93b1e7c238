/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_TRANSFER_H
#define FLYBALL_SIM_TRANSFER_H

#include <stdint.h>

#include "base/error.h"
#include "policy/decider.h"
#include "policy/past.h"
#include "sim/world/workload.h"

/*
 * What a job brings from elsewhere into a simulation: it recurs in another world first, and what it
 * showed there is folded into the decider of this one, as a live job's log would have it.
 *
 *     recurring_init(&job, workload, policy, &parameters, out_error);
 *     transfer_bring(&transfer, policy, &parameters, &job.decider, out_error);
 *
 * The source has luck of its own, and its cost enters no figure.
 */
struct transfer {
    const struct workload *source; /* borrowed; with the eta for which it was searched there */
    enum past_kind kind;           /* what differs */
    bool objective_only;  /* the same job on the same hardware: its events are folded again, and `kind` is not
                             used */
    int octaves;          /* batch sizes of the source count as this many octaves larger */
    uint64_t recurrences; /* of the source */
};

/*
 * Runs the source with the policy, and folds what it showed of the batch sizes that both have; of none,
 * nothing. Errors of recurring_run, except that a source whose job ends early brings what it has.
 */
int transfer_bring(const struct transfer *transfer, const struct batch_policy *policy,
                   const struct policy_parameters *parameters, struct decider *target,
                   struct fly_error *out_error);

#endif

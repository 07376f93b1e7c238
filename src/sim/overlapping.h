/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OVERLAPPING_H
#define FLYBALL_SIM_OVERLAPPING_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/decider.h"
#include "sim/recurring.h"
#include "sim/trial.h"
#include "sim/world/environment.h"
#include "sim/world/group_file.h"
#include "sim/world/workload.h"

/*
 * A recurring job whose submissions overlap: one may start while others run.
 *
 *     overlapping_init(&job, &workload, name, policy, &parameters, out_error);
 *     while (...)
 *         overlapping_submit(&job, &submission, out_error);
 *     overlapping_finish(&job, out_error);
 *     overlapping_deinit(&job);
 *
 * A submission's trial is decided and drawn when the submission starts; the policy learns of it
 * when the submission ends. Start and end come from the trace; a trial's simulated time has no
 * effect on the order. A trial that does not reach its target is submitted again at its end, for
 * the same length of time. A record's energy and time are those of the trial times the
 * submission's runtime_ratio; what the policy learns is not scaled. Records come in the order in
 * which trials end. Memory grows with the trials in flight, not with the submissions.
 */
enum { OVERLAPPING_TRIES_MAX = 1000 };

struct flight; /* a trial in flight */

struct overlapping {
    const struct workload *workload; /* borrowed */
    struct job_spec spec;            /* the workload's, under the group's name */
    struct arena arena;
    struct decider decider;
    struct environment environment;
    struct flight *flights; /* owned: a heap, ordered by end */
    size_t flight_count, flight_capacity;
    uint64_t submissions;
    uint64_t launches;
    uint64_t beside; /* launches while another trial was in flight */
    uint64_t records;
    uint32_t tries_max;           /* of a submission: OVERLAPPING_TRIES_MAX if nobody sets another */
    recurring_observer *observer; /* NULL: none; `recurrence` of a record is its submission */
    void *observer_context;
};

/* Borrows workload and name. Errors as the policy's create. Call overlapping_deinit only after success. */
int overlapping_init(struct overlapping *job, const struct workload *workload, const char *name,
                     const struct batch_policy *policy, const struct policy_parameters *parameters,
                     struct fly_error *out_error);
void overlapping_deinit(struct overlapping *job);

/*
 * Ends all trials that end before the submission starts, then starts it. Give submissions by
 * start, ascending. FLY_EEXHAUSTED if the policy has no choice left or a submission failed
 * tries_max times: the job has ended, which is a result.
 */
int overlapping_submit(struct overlapping *job, const struct submission *submission,
                       struct fly_error *out_error);

/* Ends all trials in flight. Errors as above. */
int overlapping_finish(struct overlapping *job, struct fly_error *out_error);

#endif

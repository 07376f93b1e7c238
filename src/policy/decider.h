/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_DECIDER_H
#define FLYBALL_POLICY_DECIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/job_spec.h"
#include "policy/batch_policy.h"
#include "policy/crash_streaks.h"
#include "policy/event.h"

/*
 * The decision core of one recurring job: a policy, what all policies need to
 * know (the power profiles), and the fold that keeps both up to date.
 *
 *     decider_fold(&decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
 *     decider_propose(&decider, recurrence, try_number, &proposal, out_error);
 *     decider_fold(&decider, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
 *     if (decider_wants_profile(&decider, &proposal))
 *         ... measure, and fold EVENT_PROFILE_MEASURED
 *     limit_w = decider_limit_w(&decider, &proposal);
 *     decider_epoch_cap(&decider, proposal.batch, epoch_energy_j, epoch_time_s, &epochs, out_error);
 *     ... train, ask decider_judge after each epoch where that is not clear before, and fold
 *     EVENT_TRIAL_ENDED
 *
 * A batch size whose trials crash again and again while others do not is given up
 * (crash_streaks.h): the policy is told and looks for others; should it propose that one all the
 * same, its driver runs another.
 *
 * Live sessions, services and the simulator all drive it this way; it cannot
 * tell them apart. Pure but for the arena: the same events give the same
 * answers. One thread at a time.
 */
struct decider_profile {
    struct fly_power_point *points; /* NULL until measured */
    size_t count;
    size_t best; /* the point chosen by the power policy */
    double highest_limit_w;
};

struct decider {
    const struct job_spec *spec; /* borrowed */
    const struct batch_policy *policy;
    const struct power_policy *power;
    void *policy_state;
    struct arena *arena;              /* borrowed; holds everything below */
    struct decider_profile *profiles; /* one per batch size */
    struct crash_streak *streaks;     /* one per batch size */
    uint64_t trials;                  /* proposed */
    uint64_t ended;                   /* trials that have */
};

enum { DECIDER_STATE_VERSION = 2 }; /* of decider_save's form, beside the policy's */

/*
 * Borrows spec, policies and arena for the decider's life. Needs decider_deinit,
 * before the arena's end, only after success.
 */
int decider_init(struct decider *decider, const struct job_spec *spec, const struct batch_policy *policy,
                 const struct policy_parameters *parameters, struct arena *arena,
                 struct fly_error *out_error);

void decider_deinit(struct decider *decider);

/*
 * Takes one event in. FLY_ENOMEM, FLY_EUSAGE for an unusable profile, or
 * FLY_EDATA for a power policy that gave no usable answer; the state is then as
 * before.
 */
int decider_fold(struct decider *decider, const struct event *event, struct fly_error *out_error);

/* What to run next, for this try of this recurrence; errors as batch_policy.propose. */
int decider_propose(const struct decider *decider, uint64_t recurrence, uint32_t try_number,
                    struct proposal *out_proposal, struct fly_error *out_error);

/* Whether a batch size is given up. */
bool decider_gave_up(const struct decider *decider, size_t batch);

/* Whether its trials crash in a row, and no other batch size has trained since (crash_streaks.h). */
bool decider_keeps_crashing(const struct decider *decider, size_t batch);

/* Whether the trial must begin by measuring its batch size's power profile. */
bool decider_wants_profile(const struct decider *decider, const struct proposal *proposal);

/* The trial's power limit; with LIMIT_PROFILED the profile must be known. */
double decider_limit_w(const struct decider *decider, const struct proposal *proposal);

/* The epochs the trial may run, given what one takes at its limit; errors as batch_policy.epoch_cap. */
int decider_epoch_cap(const struct decider *decider, size_t batch, double epoch_energy_j, double epoch_time_s,
                      uint32_t *out_epochs, struct fly_error *out_error);

/* The point that folding this profile would choose; errors as decider_fold. */
int decider_choose(const struct decider *decider, const struct profile_measured *measured, size_t *out_best,
                   struct fly_error *out_error);

/* The epochs a trial may run once this profile was folded, at its point `best`, when an epoch takes
 * `units_per_epoch` of the profile's units. */
int decider_measured_cap(const struct decider *decider, const struct profile_measured *measured, size_t best,
                         double units_per_epoch, uint32_t *out_epochs, struct fly_error *out_error);

/* Whether a trial goes on after an epoch. */
enum verdict decider_judge(const struct decider *decider, const struct progress_question *question);

/*
 * The whole fold as bytes, and back into a decider just initialised with the same
 * spec, policy and parameters. Load returns 0; 1 for bytes that are no such state, after which
 * only decider_deinit may follow; or FLY_ENOMEM. Only where decider_saves.
 */
bool decider_saves(const struct decider *decider);
void decider_save(const struct decider *decider, struct buffer *bytes);
int decider_load(struct decider *decider, struct bytes_reader *bytes, struct fly_error *out_error);

#endif

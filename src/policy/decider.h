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
#include "policy/search_guard.h"

/*
 * The decision core of one recurring job: a policy, the power profiles, which all policies need,
 * and the fold that updates both from events.
 *
 *     decider_fold(&decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
 *     decider_propose(&decider, recurrence, try_number, &proposal, out_error);
 *     decider_fold(&decider, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
 *     if (decider_wants_profile(&decider, &proposal))
 *         ... measure, and fold EVENT_PROFILE_MEASURED
 *     limit_w = decider_limit_w(&decider, &proposal);
 *     decider_epoch_cap(&decider, proposal.batch, epoch_energy_j, epoch_time_s, &epochs, out_error);
 *     ... train; after each epoch ask decider_judge, unless its answer is already clear; and fold
 *     EVENT_TRIAL_ENDED
 *
 * A batch size whose trials crash again and again while others do not is given up
 * (crash_streaks.h): the policy is told and looks for others. If it proposes that batch size all
 * the same, the caller must run another.
 *
 * A guard (search_guard.h) holds what the policy's trials take against the default. Where it must, it has the
 * default run with no cap in the place of the policy's choice, and lets learning begin anew: the policy's
 * state is made afresh, with the profiles, what does not fit and what crashes. This follows from the folded
 * proposal (REASON_GUARD), so a log without one folds as ever.
 *
 * Live sessions, services and the simulator all drive it in this way, and it cannot tell them
 * apart. Pure except for the arena: the same events give the same answers. One thread at a time.
 */
struct decider_profile {
    struct fly_power_point *points; /* NULL until measured */
    size_t count;
    size_t best;            /* index of the point that the power policy chose */
    double units_per_epoch; /* as in profile_measured */
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
    bool crashing;                    /* a trial has crashed: streaks are followed */
    uint64_t trials;                  /* proposed */
    uint64_t ended;                   /* trials that have ended */
    double recurrences_left;          /* that have not begun; NAN: not known; its owner keeps it up to date */
    struct policy_parameters parameters;
    bool guarded; /* the guard learns from every event, and says where the default runs */
    struct guard guard;
    uint64_t begun_anew; /* how often learning began anew */
    size_t excluded;     /* the first batch size that does not fit; batch_count if all fit */
};

enum { DECIDER_STATE_VERSION = 7 }; /* version of decider_save's format, besides the policy's own */

/*
 * Borrows spec, policies and arena for the lifetime of the decider. Call decider_deinit, before
 * the arena ends, only after success.
 */
int decider_init(struct decider *decider, const struct job_spec *spec, const struct batch_policy *policy,
                 const struct policy_parameters *parameters, struct arena *arena,
                 struct fly_error *out_error);

void decider_deinit(struct decider *decider);

/*
 * Updates the state with one event. FLY_ENOMEM, FLY_EUSAGE for an unusable profile, or FLY_EDATA
 * for a power policy that gave no usable answer; the state is then unchanged.
 */
int decider_fold(struct decider *decider, const struct event *event, struct fly_error *out_error);

/* Proposes what to run next, for this try of this recurrence; errors as batch_policy.propose. */
int decider_propose(const struct decider *decider, uint64_t recurrence, uint32_t try_number,
                    struct proposal *out_proposal, struct fly_error *out_error);

/* Says what the policy expects of each batch size before a new recurrence, as batch_policy.explain. */
bool decider_explain(const struct decider *decider, struct batch_outlook *outlooks);

/* Returns the guard's reason to run the default at this try of a recurrence; REASON_COUNT for none. */
enum reason decider_guard_reason(const struct decider *decider, uint32_t try_number);

/* Returns whether the default no longer reaches its target, so that nothing is held against it. */
bool decider_default_fails(const struct decider *decider);

/* Returns whether a batch size is given up. */
bool decider_gave_up(const struct decider *decider, size_t batch);

/* Returns whether its trials crash in a row and no other batch size has trained since (crash_streaks.h). */
bool decider_keeps_crashing(const struct decider *decider, size_t batch);

/* Returns whether the trial must begin by measuring its batch size's power profile. */
bool decider_wants_profile(const struct decider *decider, const struct proposal *proposal);

/* Returns the trial's power limit; with LIMIT_PROFILED the profile must be known. */
double decider_limit_w(const struct decider *decider, const struct proposal *proposal);

/*
 * Gives the epochs that the trial may run, unless its proposal is uncapped; energy and time are those of one
 * epoch at its limit. Errors as batch_policy.epoch_cap.
 */
int decider_epoch_cap(const struct decider *decider, size_t batch, double epoch_energy_j, double epoch_time_s,
                      uint32_t *out_epochs, struct fly_error *out_error);

/* The same for a trial that also takes something apart from its epochs. The decider fills in the rest. */
int decider_cap(const struct decider *decider, struct epoch_question *question, uint32_t *out_epochs,
                struct fly_error *out_error);

/*
 * Returns whether the policy chooses pairs of batch size and power limit within the job's bound on the
 * slowdown. Else the bound holds for the limits of each batch size by themselves, and whoever runs
 * the job must apply it to batch sizes.
 */
bool decider_chooses_pairs(const struct decider *decider);

/* Returns whether the batch size keeps the bound, for a policy that chooses pairs. */
bool decider_keeps_bound(const struct decider *decider, size_t batch);

/*
 * Gives the point of this profile at which its batch size would run, folded or not; errors as
 * decider_fold.
 */
int decider_choose(const struct decider *decider, const struct profile_measured *measured, size_t *out_best,
                   struct fly_error *out_error);

/*
 * Gives the epochs that a trial may run after this profile is folded, at its point `best`, if an
 * epoch takes `units_per_epoch` of the profile's units.
 */
int decider_measured_cap(const struct decider *decider, const struct profile_measured *measured, size_t best,
                         double units_per_epoch, uint32_t *out_epochs, struct fly_error *out_error);

/* Returns whether a trial goes on after an epoch. */
enum verdict decider_judge(const struct decider *decider, const struct progress_question *question);

/*
 * Write the whole fold as bytes, and read it back into a decider just initialised with the same
 * spec, policy and parameters. Load returns 0; 1 for bytes that are no such state, after which
 * you may only call decider_deinit; or FLY_ENOMEM. Only for
 * policies with `save` and `load`.
 */
/* Tells the policy, whose own state was just loaded, the profiles and what is given up. */
void decider_tell_kept(struct decider *decider);
void decider_save(const struct decider *decider, struct buffer *bytes);
int decider_load(struct decider *decider, struct bytes_reader *bytes, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PAIR_BOUND_H
#define FLYBALL_POLICY_PAIR_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "model/job_spec.h"
#include "policy/bayes_belief.h"
#include "policy/event.h"

/*
 * One bound on the slowdown for pairs of batch size and power limit: which limit it leaves each
 * batch size, by what is believed of epochs and measured of times.
 *
 *     time to target = expected epochs * seconds of an epoch at the limit
 *
 * is held against that of the default batch size at its highest limit. Only epochs are uncertain:
 * the seconds are the profile's, brought to the level of whole trials (with validation and all else
 * between the epochs). Profiling, and tries that were stopped, are not held against a batch size;
 * tries that did all their epochs in vain are, since another must follow.
 *
 * A pair keeps the bound if it is expected to, and exceeds it by more than 2 % with a probability of
 * at most 10 %. The default batch size has the same epochs at every limit, so its
 * limits keep or break the bound for certain.
 *
 * A batch size without a profile is taken to have the default's: the shape of its times and costs over
 * the limits, and times that change with the batch size as the costs do.
 *
 * Until the default has reached its target there is nothing to hold a time against, and every batch
 * size keeps the bound at its own best limit.
 *
 * Pure but for the arena; deterministic.
 */

/* What is known of one batch size's time. */
struct pair_arm {
    const struct fly_power_point *points; /* borrowed; NULL: no profile */
    size_t count;
    size_t best;            /* the point that the power policy chose */
    size_t cheapest;        /* the point of least cost, whatever time it takes */
    double units_per_epoch; /* 0: not known */
    double taken_s,
        profile_s; /* what runs at one limit of the profile took, and what the profile says of them */
    double run_s, run_epochs; /* of runs without a profile */
    uint64_t reached, missed; /* runs that reached their target, or did all their epochs without */
    double epochs;            /* sum over the reached */
    uint64_t profiling;       /* trials that ran under several limits and have not ended */
};

struct pair_bound {
    const struct job_spec *spec; /* borrowed */
    struct pair_arm *arms;       /* NULL: there is no bound */
};

/* An epoch of one batch size, known though the belief may not have taken it in yet. */
struct epoch_cost {
    size_t batch;
    double cost;
    double time_s;
};

/* What the bound leaves of one batch size. */
struct pair {
    bool held;       /* its time can be held against the default's */
    bool keeps;      /* it keeps the bound at `point`; true if it cannot be told */
    bool has_point;  /* the bound chose `point`; false: what an epoch takes at its limits is not known */
    size_t point;    /* of the profile: of least objective where the bound is kept, else the fastest */
    double log_cost; /* what an epoch costs there beyond `cheapest`, as a logarithm */
    double log_cost_known; /* likewise, at the point that it would have if its epochs and the default's were
                              known to be as expected; infinite if it were beyond the bound then */
    double log_over;       /* of expected time there / allowed time */
    double variance;       /* of log_over */
    double resolved; /* the part of it that any one trial ends: what an epoch costs before its profile */
};

/* Makes it in the arena. Returns whether there was room. Borrows `spec`. */
bool pair_bound_init(struct pair_bound *bound, const struct job_spec *spec, struct arena *arena);

/* Takes in a profile. `running` trials of its batch size run, at several limits. */
void pair_bound_take_profile(struct pair_bound *bound, const struct profile_measured *measured,
                             uint64_t running);

/* Takes in the end of any trial, whoever proposed it. */
void pair_bound_take_ended(struct pair_bound *bound, const struct fly_trial *ended);

/* Returns what an epoch costs at the cheapest point of a profile, in units of its work. */
double pair_bound_least_cost(const struct pair_bound *bound, const struct profile_measured *measured);

/*
 * Gives what the bound leaves of a batch size. `measured` is its profile if that has not been taken in
 * yet, else NULL.
 */
struct pair pair_bound_of(const struct pair_bound *bound, const struct belief *belief, size_t batch,
                          const struct profile_measured *measured);

/*
 * Gives what the bound leaves of all batch sizes, in `pairs`, and returns it; `pairs` may be NULL, as may
 * `exact`: an epoch of a trial at the limit at which it runs.
 */
const struct pair *pair_bound_open(const struct pair_bound *bound, const struct belief *belief,
                                   const struct epoch_cost *exact, struct pair *pairs);

/*
 * The probability that the batch size keeps the bound once `runs` more trials of it have ended; 1
 * for one that keeps it, 0 for one that is beyond it at its fastest limit with 95 %.
 */
double pair_chance(const struct pair *pair, const struct belief *belief, size_t batch, size_t default_batch,
                   uint32_t runs);

/* Returns whether the batch size is beyond the bound at its fastest limit, by three standard deviations. */
bool pair_is_beyond(const struct pair *pair);

/*
 * How much of the doubt about a batch size's slowdown `runs` more runs of the default would take away, as a
 * share of the margin by which the bound must be kept.
 */
double pair_narrowing(const struct pair *pair, const struct belief *belief, size_t batch,
                      size_t default_batch, uint32_t runs);

/* Write what was taken in as bytes, and read it back, but for the profiles; false for impossible bytes. */
void pair_bound_save(const struct pair_bound *bound, struct buffer *bytes);
bool pair_bound_load(struct pair_bound *bound, struct bytes_reader *bytes);

/* Takes a profile again that a saved state had. */
void pair_bound_keep_profile(struct pair_bound *bound, const struct profile_measured *kept);

#endif

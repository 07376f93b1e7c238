/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_REPLAY_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_REPLAY_H

#include "train/account/carbon_ledger.h"

/*
 * Estimates a run's slices as they would have been at one power limit throughout, from the measured profile,
 * as carbon_statement.h explains. Value types; pure.
 */
struct carbon_replay {
    struct carbon_profile bare;  /* power of the GPUs alone */
    struct carbon_profile whole; /* power with the rest of the machine: chooses the best single limit */
    double step_s;               /* at the fastest limit */
};

/* A stretch of time and the energy used in it. */
struct carbon_stretch {
    double start_s, end_s; /* since 1970; equal for a pause that is left out */
    double gpu_j;          /* NAN: not known */
    double time_share;     /* its time over that of the run's slice; the host's energy grows with it */
};

/*
 * Takes the ledger's profile. Returns FLY_EUSAGE when it has no points or is malformed, FLY_ELIMIT when it
 * has too many.
 */
int carbon_replay_init(struct carbon_replay *replay, const struct ledger_content *ledger,
                       struct fly_error *out_error);

/*
 * The profile's point at a limit, or on the line between two points; false when the profile does not cover
 * it.
 */
bool carbon_replay_point(const struct carbon_replay *replay, double limit_w, struct carbon_point *out_point);

/* Whether the slice is work at a limit of the profile; `counted`: steps were counted. */
bool carbon_replay_covers(const struct carbon_replay *replay, const struct energy_slice *slice, bool counted,
                          struct carbon_point *out_point);

/*
 * The slice as it would have been at that point, whose power is that of the GPUs alone. `shift_s` is how much
 * later the slice starts; the extra time that it takes is added.
 */
struct carbon_stretch carbon_replay_slice(const struct carbon_replay *replay,
                                          const struct energy_slice *slice, bool counted,
                                          const struct carbon_point *to, double *shift_s);

/*
 * Finds the best single limit under the bound that the ledger states, as an index into `bare.points`, and
 * that bound.
 */
size_t carbon_replay_static(const struct carbon_replay *replay, const struct ledger_content *ledger,
                            bool counted, double *out_bound);

/* The best constant speed within a bound: a mixture of two limits, and what the GPUs alone draw in it. */
struct carbon_mix carbon_replay_mix(const struct carbon_replay *replay, double bound);

#endif

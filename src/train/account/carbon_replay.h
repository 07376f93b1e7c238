/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_REPLAY_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_REPLAY_H

#include "train/account/carbon_ledger.h"

/*
 * A run's slices as they would have been at one power limit throughout, estimated from
 * the measured profile as carbon_statement.h says. Value types; pure.
 */
struct carbon_replay {
    struct carbon_profile bare;  /* of the GPUs alone */
    struct carbon_profile whole; /* with what stands beside them: chooses the best single limit */
    double step_s;               /* at the fastest limit */
};

/* A stretch of time with what was drawn in it. */
struct carbon_stretch {
    double start_s, end_s; /* since 1970; the same for a pause that is left out */
    double gpu_j;          /* NAN: not known */
    double
        time_share; /* its time, as a share of that of the run's slice; what the host takes grows with it */
};

/* FLY_EUSAGE for a profile without points or one that is none, FLY_ELIMIT for too many. */
int carbon_replay_init(struct carbon_replay *replay, const struct ledger_content *ledger,
                       struct fly_error *out_error);

/* What the profile says of a limit, or of the line between two; false where it says nothing. */
bool carbon_replay_point(const struct carbon_replay *replay, double limit_w, struct carbon_point *out_point);

/* Whether the slice is work at a limit of the profile; `counted`: somebody counts steps. */
bool carbon_replay_covers(const struct carbon_replay *replay, const struct energy_slice *slice, bool counted,
                          struct carbon_point *out_point);

/* The slice at that point, whose power is that of the GPUs alone; `shift_s` is by how much it starts later,
 * and grows by what it takes more. */
struct carbon_stretch carbon_replay_slice(const struct carbon_replay *replay,
                                          const struct energy_slice *slice, bool counted,
                                          const struct carbon_point *to, double *shift_s);

/* The best single limit for the bound that the ledger states, an index into `bare.points`, and the bound. */
size_t carbon_replay_static(const struct carbon_replay *replay, const struct ledger_content *ledger,
                            bool counted, double *out_bound);

/* The best constant speed within a bound: the mixture, and what the GPUs alone draw in it. */
struct carbon_mix carbon_replay_mix(const struct carbon_replay *replay, double bound);

#endif

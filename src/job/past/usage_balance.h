/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_BALANCE_H
#define FLYBALL_JOB_PAST_USAGE_BALANCE_H

#include "job/past/name_index.h"
#include "job/past/usage.h"

/*
 * What the meters counted beyond what the logs attribute: the rows of a usage and these remainders together
 * are what the meters counted. By host and by GPU there is one remainder for each name that a row or a meter
 * has; otherwise there is a single one. It is negative when more is attributed than was counted.
 */
struct usage_meter {
    const char *uuid, *host, *model; /* "": unknown */
    double energy_j;
    double time_s; /* that the energy covers */
};

struct usage_remainder {
    const char *name; /* of the host or the GPU; "": unknown, or the single one */
    const char *model;
    size_t meters; /* 0: no meter there */
    double metered_j, metered_s;
    double energy_j; /* metered but not attributed */
    double gpu_time_s;
};

struct usage_balance {
    struct usage_remainder *remainders; /* owned; sorted by the bytes of their names */
    size_t count;
    double metered_j, metered_s;
    struct name_index names;
};

/*
 * Pure. Returns 0, FLY_ENOMEM or FLY_ELIMIT. After success call the deinit; rows and meters must outlive the
 * balance.
 */
int usage_balance_make(enum usage_key key, const struct usage_row *rows, size_t row_count,
                       const struct usage_meter *meters, size_t meter_count,
                       struct usage_balance *out_balance, struct fly_error *out_error);
void usage_balance_deinit(struct usage_balance *balance);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_BALANCE_H
#define FLYBALL_JOB_PAST_USAGE_BALANCE_H

#include "job/past/name_index.h"
#include "job/past/usage.h"

/*
 * What the meters counted beyond what the logs attribute, so that the rows of a usage
 * and these together are what the meters counted. By host and by GPU there is one for
 * each name that stands in a row or at a meter; else there is one in all. It is
 * negative where more is attributed than was counted.
 */
struct usage_meter {
    const char *uuid, *host, *model; /* "": unknown */
    double energy_j;
    double time_s; /* that it covers */
};

struct usage_remainder {
    const char *name; /* of the host or the GPU, "": unknown, or the one in all */
    const char *model;
    size_t meters; /* 0: nothing was metered there */
    double metered_j, metered_s;
    double energy_j; /* metered, and not attributed */
    double gpu_time_s;
};

struct usage_balance {
    struct usage_remainder *remainders; /* owned; in the order of their names' bytes */
    size_t count;
    double metered_j, metered_s;
    struct name_index names;
};

/* Pure. FLY_ENOMEM, FLY_ELIMIT. Needs the deinit after success; rows and meters outlive it. */
int usage_balance_make(enum usage_key key, const struct usage_row *rows, size_t row_count,
                       const struct usage_meter *meters, size_t meter_count,
                       struct usage_balance *out_balance, struct fly_error *out_error);
void usage_balance_deinit(struct usage_balance *balance);

#endif

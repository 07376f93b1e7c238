/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_CARBON_ACCOUNTS_H
#define FLYBALL_CLI_CARBON_CARBON_ACCOUNTS_H

#include "cli/frame/call.h"
#include "train/account/carbon_ledger.h"

/*
 * The accounts of energy that runs have left, and those of them that make up one run: a
 * file for each rank. A run is named by a path, by a file's name with or without its ending, or by the
 * name of the run or of the job, of which the newest is meant.
 */
enum { ACCOUNT_RANKS_MAX = 4096 };

struct carbon_accounts {
    char **paths; /* in the arena, rank 0 first */
    size_t count;
};

/* `name` NULL: the newest. FLY_ENOTFOUND, FLY_EREAD, FLY_ENOMEM. */
int carbon_accounts_find(const char *directory, const char *name, struct arena *arena,
                         struct carbon_accounts *out_accounts, struct fly_error *out_error);

extern const struct quantities carbon_accounts_quantities;

/* The table of all that there are; one that cannot be read says why. */
int carbon_accounts_emit(const struct cli_call *call, const char *directory, struct fly_error *out_error);

#endif

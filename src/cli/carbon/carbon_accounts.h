/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_CARBON_ACCOUNTS_H
#define FLYBALL_CLI_CARBON_CARBON_ACCOUNTS_H

#include "cli/frame/call.h"
#include "train/account/carbon_ledger.h"

/*
 * The accounts of energy that runs have left, and those that belong to one run: a file for each
 * rank. A run is named by a path, by a file's name with or without its ending, or by the name of
 * the run or of the job; of several, the newest is taken.
 */
enum { ACCOUNT_RANKS_MAX = 4096 };

struct carbon_accounts {
    char **paths; /* in the arena, rank 0 first */
    size_t count;
};

/* Finds the files of a run; `name` NULL: the newest one. FLY_ENOTFOUND, FLY_EREAD, FLY_ENOMEM. */
int carbon_accounts_find(const char *directory, const char *name, struct arena *arena,
                         struct carbon_accounts *out_accounts, struct fly_error *out_error);

extern const struct quantities carbon_accounts_quantities;

/* Prints a table of all accounts; one that cannot be read says why. */
int carbon_accounts_emit(const struct cli_call *call, const char *directory, struct fly_error *out_error);

#endif

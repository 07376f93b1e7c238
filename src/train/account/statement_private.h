/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_STATEMENT_PRIVATE_H
#define FLYBALL_TRAIN_ACCOUNT_STATEMENT_PRIVATE_H

#include "train/account/carbon_replay.h"
#include "train/account/carbon_statement.h"

/* Parts of carbon_statement.c: a statement in the making. */

/* One slice in one of the ways to run, with all that it takes. */
struct statement_stretch {
    double start_s, end_s;
    double energy_j[STATEMENT_ALL]; /* of each part but the sum; NAN: not known */
};

struct statement_maker {
    const struct statement_request *request;
    struct arena *arena;
    struct carbon_statement *statement;
    struct carbon_replay *replay;                        /* NULL: nothing to compare with */
    struct carbon_point targets[STATEMENT_WAYS];         /* of the GPUs alone */
    bool *counted;                                       /* by ledger: steps are */
    size_t count;                                        /* of slices, of all ledgers */
    struct statement_stretch *stretches[STATEMENT_WAYS]; /* each of `count`; NULL: not known */
    struct grid_filler fillers[CARBON_SIGNALS];
    bool filled[CARBON_SIGNALS];
    int64_t from_s, to_s; /* the grid's figures are wanted of */
};

/* The figures of one way, whose stretches are known. */
void statement_sum(const struct statement_maker *maker, enum statement_way way);

/* The run cut at the borders of the grid's periods. */
int statement_periods_make(struct statement_maker *maker, struct fly_error *out_error);

#endif

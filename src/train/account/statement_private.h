/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_STATEMENT_PRIVATE_H
#define FLYBALL_TRAIN_ACCOUNT_STATEMENT_PRIVATE_H

#include "train/account/carbon_replay.h"
#include "train/account/carbon_statement.h"

/* The parts of carbon_statement.c. */

/* One slice in one of the ways to run, with all its energy. */
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
    bool *counted;                                       /* by ledger: whether steps were counted */
    size_t count;                                        /* of the slices in all ledgers */
    struct statement_stretch *stretches[STATEMENT_WAYS]; /* `count` each; NULL: not known */
    struct grid_filler fillers[CARBON_SIGNALS];
    bool filled[CARBON_SIGNALS];
    int64_t from_s, to_s; /* the time for which the grid's figures are needed */
};

/* Sums the figures of one way, whose stretches are known. */
void statement_sum(const struct statement_maker *maker, enum statement_way way);

/* Cuts the run at the borders of the grid's periods. */
int statement_periods_make(struct statement_maker *maker, struct fly_error *out_error);

#endif

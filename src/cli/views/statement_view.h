/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_STATEMENT_VIEW_H
#define FLYBALL_CLI_VIEWS_STATEMENT_VIEW_H

#include <jansson.h>

#include "base/buffer.h"
#include "train/account/carbon_statement.h"

/*
 * What a run took, emitted and cost: as lines for people, each after `indent`, and as an object
 * for programs. Both say what is not known.
 */
void statement_lines(const struct carbon_statement *statement, const char *indent, struct buffer *out);

/* Shares by the quality of the grid's figure, written in percent. */
struct quality_shares {
    double of[GRID_QUALITY_COUNT];
};
extern const struct shape quality_share_shape;

/* Owned by the caller; NULL without memory. */
json_t *statement_json(const struct carbon_statement *statement);

/*
 * Writes "312 g", "1.24 kg" or "0.213 EUR"; without a unit if the currency is "". A figure that
 * is not finite is "unknown".
 */
enum { STATEMENT_AMOUNT_MAX = 64 };
char *statement_amount(int signal, double amount, const char *currency, char text[STATEMENT_AMOUNT_MAX]);

/*
 * The statement of a run (train/account/carbon_statement.h), with the ledgers and the grid's
 * figures from which it is made, read for `flyball carbon report`.
 *
 *     const struct statement_wish wish = {.paths = paths, .path_count = 1};
 *     struct statement_view view;
 *
 *     code = statement_view_open(&view, &wish, out_error);
 *     ... view.statement, view.ledgers[0].head ...
 *     statement_view_close(&view);                           after success and failure
 */
struct statement_wish {
    const char *const *paths; /* of the ledgers of one run, rank 0 first */
    size_t path_count;
    const char *sources[CARBON_SIGNALS]; /* replace those that the ledger names; NULL: the ledger's */
    bool cached_only;                    /* asks no server for the grid's figures */
    int64_t now_s;                       /* 0: the machine's clock */
};

struct statement_view {
    struct arena arena;
    struct ledger_content *ledgers; /* in the arena, one for each path */
    size_t ledger_count;
    const char *sources[CARBON_SIGNALS];        /* those that were read; NULL for none */
    struct grid_answer answers[CARBON_SIGNALS]; /* owned */
    bool has[CARBON_SIGNALS];
    char remarks[CARBON_SIGNALS][FLY_ERROR_TEXT_MAX]; /* why figures are missing or old; "" */
    struct carbon_statement statement;
};

/*
 * A source that does not answer is no error: its remark says why, and energy without a figure is
 * counted as such. FLY_EDATA, FLY_ENOTFOUND, FLY_EREAD, FLY_ELIMIT, FLY_ENOMEM.
 */
int statement_view_open(struct statement_view *view, const struct statement_wish *wish,
                        struct fly_error *out_error);
void statement_view_close(struct statement_view *view);

#endif

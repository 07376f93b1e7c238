/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_STATEMENT_VIEW_H
#define FLYBALL_CLI_STATEMENT_VIEW_H

#include <jansson.h>

#include "base/buffer.h"
#include "train/carbon_statement.h"

/*
 * The statement of a run (train/carbon_statement.h) for people and for programs: at the end
 * of `flyball run` and in `flyball carbon report`.
 *
 *     const struct statement_wish wish = {.paths = &path, .path_count = 1, .cached_only = true};
 *     struct statement_view view;
 *
 *     code = statement_view_open(&view, &wish, out_error);
 *     statement_view_write(&view, &text);                    lines, each with its "\n"
 *     json_object_set_new(report, "carbon", statement_view_json(&view));
 *     statement_view_close(&view);                           after success and failure
 */
struct statement_wish {
    const char *const *paths; /* of the ledgers of one run */
    size_t path_count;
    bool cached_only; /* asks no server for the grid's figures */
    int64_t now_s;    /* 0: the machine's clock */
};

struct statement_view {
    struct arena arena;
    struct ledger_content *ledgers;
    size_t ledger_count;
    struct grid_answer answers[CARBON_SIGNALS]; /* owned */
    bool has[CARBON_SIGNALS];
    char remarks[CARBON_SIGNALS][FLY_ERROR_TEXT_MAX]; /* why figures are missing or old; "" */
    struct carbon_statement statement;
};

/*
 * Reads ledgers and the grid. A source that does not answer is no error: its remark says why,
 * and energy without a figure is counted as such. FLY_EDATA, FLY_ENOTFOUND, FLY_EREAD, FLY_ELIMIT,
 * FLY_ENOMEM.
 */
int statement_view_open(struct statement_view *view, const struct statement_wish *wish,
                        struct fly_error *out_error);
void statement_view_close(struct statement_view *view);

void statement_view_write(const struct statement_view *view, struct buffer *out);

/* The object described in docs/carbon_live.md, without its periods; NULL without memory. */
json_t *statement_view_json(const struct statement_view *view);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_CARBON_VIEW_H
#define FLYBALL_CLI_CARBON_CARBON_VIEW_H

#include "cli/frame/call.h"
#include "grid/providers.h"
#include "train/account/carbon_statement.h"

/*
 * What the commands `flyball carbon ...` share: the source and which of its figures to use, and
 * periods as a table and as a picture.
 */

extern const struct cli_options carbon_view_options, carbon_svg_option;

/* Figures of one source, and the periods to show. */
struct carbon_view {
    const char *source;
    struct grid_request request; /* with the current time in it */
    struct grid_answer answer;   /* owned */
    int64_t from_s;              /* of a forecast */
    struct grid_period *rows;    /* owned */
    size_t count;
};

/* Sets signal and scope by the options. */
void carbon_view_choose(const struct cli_call *call, struct grid_request *request);

/* Reads a time from an option, or takes `otherwise`. */
int carbon_view_time(const struct cli_call *call, const char *option, int64_t otherwise, int64_t *out_s,
                     struct fly_error *out_error);

/* Draws the intensity over time into a file. FLY_EWRITE, FLY_ENOMEM, FLY_ELIMIT. */
int carbon_plot(const struct carbon_view *view, const char *path, struct fly_error *out_error);

/*
 * Draws a run or a plan over time, one panel below the other: the grid's figures with what they are based on,
 * the power limit that was chosen (the slices are the first rank's), and energy, grams and money of each
 * period. FLY_EWRITE, FLY_ENOMEM, FLY_ELIMIT.
 */
int statement_plot(const struct carbon_statement *statement, const struct energy_slice *slices,
                   size_t slice_count, const char *title, const char *path, struct fly_error *out_error);

#endif

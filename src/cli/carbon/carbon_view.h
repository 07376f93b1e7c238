/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_CARBON_VIEW_H
#define FLYBALL_CLI_CARBON_CARBON_VIEW_H

#include "base/atomic_file.h"
#include "cli/frame/call.h"
#include "grid/grid_answer.h"

/*
 * What the commands `flyball carbon ...` share: the source and which of its figures, periods
 * as a table and as a picture.
 */
#define CARBON_OPTIONS                                                                                      \
    {.name = "source",                                                                                      \
     .alias = "zone",                                                                                       \
     .type = CLI_TEXT,                                                                                      \
     .placeholder = "SOURCE",                                                                               \
     .key = "carbon.source",                                                                                \
     .help = "Where figures come from, unless SOURCE is given: PROVIDER:PLACE, or a CSV file."},            \
        {.name = "signal",                                                                                  \
         .type = CLI_CHOICE,                                                                                \
         .placeholder = "WHICH",                                                                            \
         .choices = carbon_signal_names,                                                                    \
         .key = "carbon.signal",                                                                            \
         .help = "Average or marginal intensities; what the provider usually gives unless set."},           \
        {.name = "scope",                                                                                   \
         .type = CLI_CHOICE,                                                                                \
         .placeholder = "WHICH",                                                                            \
         .choices = carbon_scope_names,                                                                     \
         .key = "carbon.scope",                                                                             \
         .help = "Of burning the fuel, or of the whole life cycle; what the provider usually gives unless " \
                 "set."},                                                                                   \
    {                                                                                                       \
        .name = "cached", .type = CLI_FLAG, .help = "Ask no server: show what was fetched before."          \
    }

#define CARBON_OPTION_SVG                                       \
    {                                                           \
        .name = "svg", .type = CLI_TEXT, .placeholder = "FILE", \
        .help = "Draw the intensity over time into this file."  \
    }

extern const char *const carbon_signal_names[], *const carbon_scope_names[];

/* Figures of one source, and the periods to be shown. */
struct carbon_view {
    const char *source;
    struct grid_request request; /* with the time of now in it */
    struct grid_answer answer;   /* owned */
    struct grid_period *rows;    /* owned */
    size_t count;
};

/* Signal and scope as the options say. */
void carbon_view_choose(const struct cli_call *call, struct grid_request *request);

/* The request as the options say; from and to are the command's to set. */
int carbon_view_begin(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error);

/* A time of an option, or `otherwise`. */
int carbon_view_time(const struct cli_call *call, const char *option, int64_t otherwise, int64_t *out_s,
                     struct fly_error *out_error);

/* Reads; warns of what is missing. */
int carbon_view_read(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error);

/* Whether the source holds all that there is: a file or a constant, which nobody is asked for. */
bool carbon_view_is_local(const struct carbon_view *view);

/* Rows from what is known: actual values, else published ones, else unknown. FLY_ENOMEM, FLY_ELIMIT. */
int carbon_view_sweep(struct carbon_view *view, int64_t from_s, int64_t to_s, struct fly_error *out_error);

/* Rows from now on, as a plan sees them (grid/forecast.h). */
int carbon_view_forecast(struct carbon_view *view, int64_t from_s, int64_t to_s, struct fly_error *out_error);

extern const struct quantities carbon_view_quantities;

/* The table, and the picture where that is wanted. `schema` is static. */
int carbon_view_emit(const struct cli_call *call, const struct carbon_view *view, const char *schema,
                     struct fly_error *out_error);

/* Ends the use of `file`. */
int carbon_plot_commit(const struct carbon_view *view, struct atomic_file *file, struct fly_error *out_error);

void carbon_view_end(struct carbon_view *view);

#endif

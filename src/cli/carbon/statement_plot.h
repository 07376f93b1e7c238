/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_STATEMENT_PLOT_H
#define FLYBALL_CLI_CARBON_STATEMENT_PLOT_H

#include "base/file/atomic_file.h"
#include "train/account/carbon_statement.h"

/*
 * A run or a plan over time as a picture, one panel below the other: the grid's figures with what
 * they are based on, the power limit that was chosen, and energy, grams and money of each period.
 */
struct statement_plot {
    const struct carbon_statement *statement;
    const struct energy_slice *slices; /* the first rank's, for the limit */
    size_t slice_count;
    const char *title;
};

/* Draws the picture. Commits or discards `file`. FLY_EWRITE, FLY_ENOMEM, FLY_ELIMIT. */
int statement_plot_commit(const struct statement_plot *plot, struct atomic_file *file,
                          struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_TRANSFER_OPTION_H
#define FLYBALL_CLI_SIM_TRANSFER_OPTION_H

#include "cli/frame/call.h"
#include "sim/open/sim_transfer.h"

/*
 * Opens what jobs bring from elsewhere, as --transfer-from and --transfer-recurrences say. Call
 * sim_transfer_close only after success.
 */
int transfer_option_open(struct sim_transfer *set, const struct cli_call *call, const struct sim_set *targets,
                         struct fly_error *out_error);

/* clang-format off */

/* What jobs bring; transfer_option_open reads these. */
#define SIM_OPTIONS_TRANSFER \
    {.name = "transfer-from", .type = CLI_TEXT, .placeholder = "WHAT", \
     .help = "What policies that learn from elsewhere bring: recurrences of the same job on another GPU of " \
             "the traces (its name), or under another weight of energy (eta=0.9); those of another job " \
             "(its name), or of the job itself with batch sizes that are 2^N times as large (shift=N), to " \
             "see what a past costs that misleads."}, \
    {.name = "transfer-recurrences", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, \
     .maximum = 1000000, .default_text = "30", \
     .help = "Recurrences there, with luck of their own; what they cost is not counted."}

/* clang-format on */

#endif

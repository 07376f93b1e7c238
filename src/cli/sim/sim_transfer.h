/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_TRANSFER_H
#define FLYBALL_CLI_SIM_SIM_TRANSFER_H

#include "cli/frame/call.h"
#include "cli/sim/sim_workloads.h"
#include "sim/transfer.h"

/*
 * What jobs bring from elsewhere, as --transfer-from says:
 *
 *     GPU        the same job on another GPU of the traces
 *     eta=E      the same job on the same GPU, searched for another weight of energy
 *     WORKLOAD   another job of the traces on the same GPU, as if the user had named it
 *     shift=N    the job itself, as if the user had named one whose batch sizes are 2^N times as large
 */
struct sim_transfer {
    struct sim_workloads sources; /* of another GPU, or of one other job */
    bool opened;
    struct workload *copies; /* with another eta; shallow */
    struct transfer *items;  /* one per workload; NULL: nothing is brought */
};

/* Call sim_transfer_close only after success. */
int sim_transfer_open(struct sim_transfer *set, const struct cli_call *call,
                      const struct sim_workloads *targets, struct fly_error *out_error);
void sim_transfer_close(struct sim_transfer *set);

/* clang-format off */

/* What jobs bring; sim_transfer_open reads these. */
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

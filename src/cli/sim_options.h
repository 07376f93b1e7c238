/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_OPTIONS_H
#define FLYBALL_CLI_SIM_OPTIONS_H

#include <math.h>

#include "cli/command.h"

/*
 * Options that simulation commands share, as rows of their tables. A command
 * with all of these can call sim_workloads_open.
 *
 *     static const struct cli_option options[] = {
 *         SIM_OPTIONS_TRACES,
 *         SIM_OPTION_ETA,
 *         {.name = "svg", ...},
 *         SIM_OPTIONS_JOB,
 *     };
 */

/* clang-format off */

/* Which traces, and which of their jobs. */
#define SIM_OPTIONS_TRACES \
    {.name = "traces", .type = CLI_TEXT, .placeholder = "DIR", .key = "sim.traces", \
     .help = "Directory with summary_train.csv and summary_power_GPU.csv."}, \
    {.name = "gpu", .alias = "gpu-model", .type = CLI_TEXT, .placeholder = "NAME", .key = "sim.gpu", \
     .help = "GPU whose power trace is replayed, as in the file's name."}, \
    {.name = "workload", .type = CLI_LIST, .placeholder = "NAME", .default_text = "all", .key = "sim.workload", \
     .help = "Jobs to simulate, or all that the traces have: the six of the Zeus paper by dataset name, and " \
             "those of --jobs."}

/* How energy weighs against time. */
#define SIM_OPTION_ETA \
    {.name = "eta", .type = CLI_REAL, .placeholder = "WEIGHT", .minimum = 0, .maximum = 1, \
     .default_text = "0.5", .key = "eta", \
     .help = "Weight of energy against time in the cost, from 0 (time) to 1 (energy)."}

/* A job that is not one of the known ones, or differs from them. */
#define SIM_OPTIONS_JOB \
    {.name = "jobs", .type = CLI_TEXT, .placeholder = "FILE", .key = "sim.jobs", \
     .help = "Job file: a section per job with dataset, network, optimizer, target_metric, max_epochs, " \
             "default_batch_size and, optionally, batch_sizes."}, \
    {.name = "dataset", .type = CLI_TEXT, .placeholder = "NAME", \
     .help = "Dataset of the one workload in the traces; these last options describe a job or change a known " \
             "one."}, \
    {.name = "network", .type = CLI_TEXT, .placeholder = "NAME", .help = "Its network in the traces."}, \
    {.name = "optimizer", .type = CLI_TEXT, .placeholder = "NAME", .help = "Its optimizer in the traces."}, \
    {.name = "target-metric", .type = CLI_REAL, .placeholder = "VALUE", .minimum = -INFINITY, .maximum = INFINITY, \
     .help = "Its target, exactly as in the traces."}, \
    {.name = "max-epochs", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 4294967295.0, \
     .help = "Epochs after which a try has failed."}, \
    {.name = "default-batch-size", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 4294967295.0, \
     .help = "Its batch size today, from which the search starts."}, \
    {.name = "batch-sizes", .type = CLI_TEXT, .placeholder = "LIST", \
     .help = "Its batch sizes to choose from, as 8,16,32; all in the traces if not given."}

/* clang-format on */

#endif

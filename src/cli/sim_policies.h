/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_POLICIES_H
#define FLYBALL_CLI_SIM_POLICIES_H

#include <math.h>

#include "cli/call.h"
#include "cli/sim_plugins.h"
#include "sim/campaign.h"
#include "sim/crew.h"

/*
 * Which policies a simulation command compares, and the options that
 * simulation commands share, as rows of their tables.
 */
enum { SIM_POLICIES_MAX = CLI_LIST_MAX + 2 };

struct sim_policies {
    struct sim_plugins plugins;
    struct campaign_policy items[SIM_POLICIES_MAX];
    size_t count;
};

/*
 * The policies of --policy, plug-ins among them, then default and oracle where
 * they were not asked for. Needs sim_policies_close only after success.
 */
int sim_policies_open(struct sim_policies *policies, const struct cli_call *call,
                      struct fly_error *out_error);
void sim_policies_close(struct sim_policies *policies);

/* --beta, --window, --generator and --power-policy. */
struct policy_parameters sim_policy_parameters(const struct sim_policies *policies,
                                               const struct cli_call *call);

extern const char *const sim_policy_names[];
extern const char *const sim_generator_names[];

#define SIM_OPTION_TRACES                                                              \
    {                                                                                  \
        .name = "traces", .type = CLI_TEXT, .placeholder = "DIR", .key = "sim.traces", \
        .help = "Directory with summary_train.csv and summary_power_GPU.csv."          \
    }
#define SIM_OPTION_GPU                                                                                  \
    {                                                                                                   \
        .name = "gpu", .alias = "gpu-model", .type = CLI_TEXT, .placeholder = "NAME", .key = "sim.gpu", \
        .help = "GPU whose power trace is replayed, as in the file's name."                             \
    }
#define SIM_OPTION_POLICY                                                                       \
    {                                                                                           \
        .name = "policy", .type = CLI_LIST, .placeholder = "NAME", .choices = sim_policy_names, \
        .paths = true, .default_text = "zeus", .key = "sim.policy",                             \
        .help = "Policies to compare; default and oracle are always computed."                  \
    }
#define SIM_OPTION_POWER_POLICY                                                                           \
    {                                                                                                     \
        .name = "power-policy", .type = CLI_TEXT, .placeholder = "FILE",                                  \
        .help = "Shared object whose policy chooses the power limit of each profiled batch size; if not " \
                "given, least cost decides."                                                              \
    }
#define SIM_OPTION_ETA                                                                        \
    {                                                                                         \
        .name = "eta", .type = CLI_REAL, .placeholder = "WEIGHT", .minimum = 0, .maximum = 1, \
        .default_text = "0.5", .key = "eta",                                                  \
        .help = "Weight of energy against time in the cost, from 0 (time) to 1 (energy)."     \
    }
#define SIM_OPTION_BETA                                                                                 \
    {                                                                                                   \
        .name = "beta", .type = CLI_REAL, .placeholder = "FACTOR", .minimum = 0, .above_minimum = true, \
        .maximum = INFINITY, .infinite = true, .default_text = "2", .key = "beta",                      \
        .help = "Stop a try at this multiple of the least cost so far; inf for never."                  \
    }
#define SIM_OPTION_WINDOW                                                                     \
    {                                                                                         \
        .name = "window", .type = CLI_INTEGER, .placeholder = "N", .minimum = 0,              \
        .maximum = POLICY_WINDOW_MAX, .default_text = "0", .key = "window",                   \
        .help = "Newest observations of a batch size that count, to follow drift; 0 for all." \
    }
#define SIM_OPTION_GENERATOR                                                                            \
    {                                                                                                   \
        .name = "generator", .type = CLI_CHOICE, .placeholder = "NAME", .choices = sim_generator_names, \
        .default_text = "philox", .key = "sim.generator",                                               \
        .help = "Random numbers: philox (policies share their luck), or numpy to repeat runs of the "   \
                "published code."                                                                       \
    }
#define SIM_OPTION_THREADS                                                        \
    {                                                                             \
        .name = "threads", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, \
        .maximum = CREW_THREADS_MAX, .key = "sim.threads",                        \
        .help = "Worker threads; if not given, one for each processor."           \
    }
#define SIM_OPTION_TRIES                                                              \
    {                                                                                 \
        .name = "tries", .type = CLI_TEXT, .placeholder = "FILE",                     \
        .help = "Write every try of the policies named by --policy to this CSV file." \
    }
#define SIM_OPTION_JOBS                                                                                     \
    {                                                                                                       \
        .name = "jobs", .type = CLI_TEXT, .placeholder = "FILE", .key = "sim.jobs",                         \
        .help = "Job file: a section per job with dataset, network, optimizer, target_metric, max_epochs, " \
                "default_batch_size and, optionally, batch_sizes."                                          \
    }

#endif

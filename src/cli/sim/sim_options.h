/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_SIM_OPTIONS_H
#define FLYBALL_CLI_SIM_SIM_OPTIONS_H

#include <math.h>
#include <stdint.h>

#include <flyball/objective.h>

#include "base/file/atomic_file.h"
#include "cli/frame/call.h"
#include "cli/frame/command.h"
#include "cli/options/small_options.h"
#include "sim/open/sim_policies.h"

/*
 * What simulation commands do around their simulations: the tries file of --tries, the progress
 * line, the number of threads.
 *
 *     sim_run_begin(&run, call, header, units, out_error);
 *     ... sim_run_sink and sim_run_progress with &run as their context ...
 *     code = sim_run_end(&run, code, out_error);
 */
struct sim_run {
    struct atomic_file tries;
    bool has_tries;
    struct progress progress;
};

/*
 * Opens the tries file if one is asked for, and writes `header` to it. Call sim_run_end only
 * after success.
 */
int sim_run_begin(struct sim_run *run, const struct cli_call *call, const char *header, uint64_t units,
                  struct fly_error *out_error);

/* An ordered_sink; `context` is a struct sim_run. Use it only if there is a tries file. */
int sim_run_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error);

/* A plan's progress function; `context` is a struct sim_run. */
int sim_run_progress(void *context, uint64_t done, uint64_t total);

/*
 * Completes the tries file if `code` is 0, else discards it. Returns `code`, or the error that
 * happened here.
 */
int sim_run_end(struct sim_run *run, int code, struct fly_error *out_error);

/*
 * Opens the policies of --policy and --power-policy, including plug-ins, then default and oracle if they were
 * not asked for; and reads how they search: --beta, --window, --generator, --guard and --profile-window.
 * While a plug-in is open, a message names it if the program ends inside one of its functions
 * (cli/sim/plugin_crash.h). Errors as sim_policies_add_plugin; FLY_ECONFIG for a path from a configuration
 * file, which might come from a directory that somebody else has filled; FLY_EUSAGE. Call sim_policies_close
 * only after success.
 */
int policy_options_open(struct sim_policies *policies, struct policy_parameters *out_parameters,
                        const struct cli_call *call, struct fly_error *out_error);

/*
 * Reads what simulated jobs make small, and within which bound: --objective, --max-slowdown and --eta,
 * which is another spelling of --objective cost:ETA. FLY_EUSAGE.
 */
int objective_option_read(const struct cli_call *call, struct fly_objective *out_objective,
                          struct fly_error *out_error);

/*
 * Options that simulation commands share, as rows of their tables. A command that has all of
 * these can call sim_workloads_open.
 *
 *     static const struct cli_option options[] = {
 *         SIM_OPTIONS_TRACES,
 *         SIM_OPTION_ETA,
 *         {.name = "svg", ...},
 *         SIM_OPTIONS_JOB,
 *     };
 */

/* clang-format off */

/* The traces; sim_workloads_open_traces reads these options and --jobs. */
#define SIM_OPTION_TRACES \
    {.name = "traces", .type = CLI_TEXT, .placeholder = "DIR", .key = "sim.traces", \
     .help = "Directory with summary_train.csv and summary_power_GPU.csv."}
#define SIM_OPTIONS_GPU \
    SIM_OPTION_TRACES, \
    {.name = "gpu", .alias = "gpu-model", .type = CLI_TEXT, .placeholder = "NAME", .key = "sim.gpu", \
     .help = "GPU whose power trace is replayed, as in the file's name."}
#define SIM_OPTION_JOBS \
    {.name = "jobs", .type = CLI_TEXT, .placeholder = "FILE", .key = "sim.jobs", \
     .help = "Job file: a section per job with dataset, network, optimizer, target_metric, max_epochs, " \
             "default_batch_size and, optionally, batch_sizes."}

/* The traces, and which of their jobs to use. */
#define SIM_OPTION_WORKLOAD \
    {.name = "workload", .type = CLI_LIST, .placeholder = "NAME", .default_text = "all", .key = "sim.workload", \
     .help = "Jobs to simulate, or all that the traces have: the six of the Zeus paper by dataset name, and " \
             "those of --jobs."}
#define SIM_OPTIONS_TRACES SIM_OPTIONS_GPU, SIM_OPTION_WORKLOAD

/* The weight of energy against time. */
#define SIM_OPTION_ETA \
    {.name = "eta", .type = CLI_REAL, .placeholder = "WEIGHT", .minimum = 0, .maximum = 1, \
     .default_text = "0.5", .key = "eta", \
     .help = "Weight of energy against time in the score, from 0 (time) to 1 (energy)."}

/* What jobs make small, within which bound; objective_option_read reads these, and SIM_OPTION_ETA. */
#define SIM_OPTIONS_OBJECTIVE \
    {.name = "objective", .type = CLI_TEXT, .placeholder = "WHAT", \
     .help = "What the jobs make small: energy, time, cost:ETA, carbon or money. Carbon and money are energy " \
             "here, since traces have no grid. If not given, the score with the weight of --eta."}, \
    {.name = "max-slowdown", .type = CLI_TEXT, .placeholder = "BOUND", \
     .help = "Take at most so much more time than the default: 3%, 1.03x, or none. If not given, none."}

/* The policies; policy_options_open reads these. */
#define SIM_OPTION_POWER_POLICY \
    {.name = "power-policy", .type = CLI_TEXT, .placeholder = "FILE", \
     .help = "Shared object whose policy chooses the power limit of each profiled batch size; if not given, " \
             "the lowest score decides."}
#define SIM_OPTIONS_POLICY \
    {.name = "policy", .type = CLI_LIST, .placeholder = "NAME", .choices = sim_policy_names, .paths = true, \
     .default_text = "zeus", .key = "sim.policy", \
     .help = "Policies to compare; default and oracle are always computed."}, \
    SIM_OPTION_POWER_POLICY

/* How the policies search; policy_options_open reads these. */
#define SIM_OPTIONS_SEARCH \
    {.name = "beta", .type = CLI_REAL, .placeholder = "FACTOR", .minimum = 0, .above_minimum = true, \
     .maximum = INFINITY, .infinite = true, .default_text = "2", .key = "beta", \
     .help = "Stop a try at this multiple of the lowest score so far; inf for never."}, \
    {.name = "window", .type = CLI_INTEGER, .placeholder = "N", .minimum = 0, .maximum = POLICY_WINDOW_MAX, \
     .default_text = "0", .key = "window", \
     .help = "Newest observations of a batch size that count, to follow drift; 0 for all."}, \
    {.name = "generator", .type = CLI_CHOICE, .placeholder = "NAME", .choices = sim_generator_names, \
     .default_text = "philox", .key = "sim.generator", \
     .help = "Random numbers: philox (policies share their luck), or numpy to repeat runs of the published " \
             "code."}, \
    {.name = "guard", .type = CLI_CHOICE, .placeholder = "WHEN", .choices = sim_guard_names, \
     .default_text = "policy", .key = "sim.guard", \
     .help = "Whether a search that grows dearer than the default gives way to it for a while: of some " \
             "policies alone (policy: bayes), of all (on) or of none (off)."}

/* How long profiles take; policy_options_open reads it. */
#define SIM_OPTION_PROFILE_WINDOW \
    {.name = "profile-window", .type = CLI_TEXT, .placeholder = "SHARE", .key = "sim.profile_window", \
     .help = "Share of a batch size's first epoch that measuring its power limits takes, as 10%; a policy " \
             "that leaves the batch size after that pays no more. If not given, the whole epoch, as " \
             "published, and nothing for a try that is left."}

/* How the simulations run; sim_run_begin and thread_option read these. */
#define SIM_OPTIONS_RUN \
    OPTION_THREADS, \
    {.name = "tries", .type = CLI_TEXT, .placeholder = "FILE", \
     .help = "Write every try of the policies named by --policy to this CSV file."}

/* A job that is not one of the known ones, or differs from one. */
#define SIM_OPTIONS_JOB \
    SIM_OPTION_JOBS, \
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

/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim group`: groups of overlapping submissions through the decision core. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/options/number_list_option.h"
#include "cli/options/thread_option.h"
#include "cli/sim/plugin_crash.h"
#include "cli/sim/policy_options.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_run.h"
#include "cli/sim/sim_workloads.h"
#include "cli/sim/unpacked.h"
#include "sim/crew.h"
#include "sim/open/group_rows.h"
#include "sim/open/group_set.h"
#include "sim/try_writer.h"

enum { SEEDS_MAX = 100000, MEMORY_MAX = 256 << 20 };

static const struct cli_option options[] = {
    {.name = "groups",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .key = "sim.groups",
     .help =
         "CSV file of groups, also compressed as .xz: group, start_time, end_time, dataset, runtime_ratio."},
    SIM_OPTIONS_GPU,
    SIM_OPTION_JOBS,
    SIM_OPTIONS_POLICY,
    {.name = "seeds",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .default_text = "1",
     .key = "sim.group_seeds",
     .help =
         "Seeds, as 1-20. With the generator numpy, if not given, each group's seed is the Adler-32 of its "
         "name."},
    SIM_OPTION_ETA,
    SIM_OPTIONS_SEARCH,
    SIM_OPTION_PROFILE_WINDOW,
    SIM_OPTIONS_RUN,
};

/* The command's data while it runs. */
struct sim_group {
    struct arena arena;
    struct unpacked unpacked;
    struct group_file file;
    struct sim_set workloads;
    size_t *group_workloads;
    struct sim_policies policies;
    struct policy_parameters parameters;
    uint32_t *seeds;
    size_t seed_count;
    struct sim_run run;
};

static bool seeds_from_names(const struct cli_call *call)
{
    return cli_choice(call, "generator") == GENERATOR_NUMPY && !cli_given(call, "seeds");
}

static int read_seeds(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = number_list_option(call, "seeds", 0, SEEDS_MAX, &sim->arena, &sim->seeds, &sim->seed_count,
                                  out_error);

    if (code == 0 && seeds_from_names(call))
        sim->seed_count = 1;
    return code;
}

static int show(const struct sim_group *sim, const struct cli_call *call, const struct group_plan *plan,
                const struct group_result *results, struct fly_error *out_error)
{
    struct table *table = group_rows_of(plan, sim->workloads.count, results);
    int code = cli_emit_table(call, table, out_error);

    table_free(table);
    return code;
}

static int simulate(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct group_plan plan = {
        .file = &sim->file,
        .workloads = sim->workloads.items,
        .group_workloads = sim->group_workloads,
        .policies = sim->policies.items,
        .policy_count = sim->policies.count,
        .seeds = sim->seeds,
        .seed_count = sim->seed_count,
        .seed_from_name = seeds_from_names(call),
        .parameters = sim->parameters,
        .threads = thread_option(call),
        .thread_begun = plugin_crash_thread,
        .tries = cli_set(call, "tries") ? sim_run_sink : NULL,
        .tries_context = &sim->run,
        .progress = sim_run_progress,
        .progress_context = &sim->run,
    };
    struct group_result *results = NULL;
    int code = sim_run_begin(&sim->run, call, try_header_of_groups,
                             (uint64_t)sim->file.count * plan.policy_count * plan.seed_count, out_error);

    if (code < 0)
        return code;
    code = group_campaign_run(&plan, &results, out_error);
    code = sim_run_end(&sim->run, code, out_error);
    if (code == 0)
        code = show(sim, call, &plan, results, out_error);
    free(results);
    return code;
}

static int run_with_traces(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = sim_workloads_open_traces(&sim->workloads, call, out_error);

    if (code < 0)
        return code;
    code = group_set_open(&sim->workloads, &sim->file, &sim->arena, &sim->group_workloads, out_error);
    if (code == 0)
        code = policy_options_open(&sim->policies, &sim->parameters, call, out_error);
    if (code == 0) {
        code = simulate(sim, call, out_error);
        sim_policies_close(&sim->policies);
    }
    sim_set_close(&sim->workloads);
    return code;
}

static int sim_group_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_group sim; /* large; the program runs one command */
    const char *groups = cli_text(call, "groups");
    int code;

    if (groups == NULL)
        return cli_usage(call, out_error, "no groups given; name their file with --groups FILE");
    arena_init(&sim.arena, MEMORY_MAX);
    code = read_seeds(&sim, call, out_error);
    if (code == 0)
        code = unpacked_open(&sim.unpacked, groups, out_error);
    if (code == 0)
        code = group_file_open(&sim.file, sim.unpacked.open, groups, out_error);
    if (code == 0) {
        code = run_with_traces(&sim, call, out_error);
        group_file_close(&sim.file);
    }
    unpacked_close(&sim.unpacked);
    arena_deinit(&sim.arena);
    return code;
}

const struct cli_command cmd_sim_group = {
    .words = "sim group",
    .summary = "replay groups of overlapping submissions",
    .paragraphs = {"Replays groups of overlapping submissions of recurring jobs, all groups in parallel. A "
                   "group is one "
                   "recurring job; while one of its trials runs, further submissions take the best choice "
                   "known so far. A "
                   "trial that does not reach its target is submitted again at its end.",
                   "The file has the columns group, start_time, end_time, dataset and runtime_ratio, the "
                   "rows of a group "
                   "together and by start_time. A dataset names one of the known jobs. Energy and time of a "
                   "submission are "
                   "the trace's times its runtime_ratio; what the policy learns is not scaled.",
                   "Compares the sums over all groups with those of the default. The tries file has the "
                   "columns of flyball sim "
                   "job with group after gpu; recurrence is the submission, and rows stand in the order in "
                   "which trials end."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball sim group --groups groups.csv.xz --traces traces --gpu v100",
                  "replay with the published search"},
                 {"flyball sim make-groups groups.csv --submissions 100000", "make up a file to try"}},
    .outputs = {&group_rows_quantities},
    .run = sim_group_run,
};

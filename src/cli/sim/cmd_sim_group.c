/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim group`: groups of overlapping submissions through the decision core. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/options/number_list.h"
#include "cli/options/thread_option.h"
#include "cli/sim/group_report.h"
#include "cli/sim/plugin_crash.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_policies.h"
#include "cli/sim/sim_run.h"
#include "cli/sim/sim_workloads.h"
#include "cli/sim/unpacked.h"
#include "sim/crew.h"
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
     .help = "Seeds, as 1-20; not with the generator numpy, where each group's seed is the Adler-32 of its "
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
    struct sim_workloads workloads;
    size_t *group_workloads;
    struct sim_policies policies;
    uint32_t *seeds;
    size_t seed_count;
    struct sim_run run;
};

/* Returns the workload of a dataset, which is opened when the dataset first occurs. */
static int find_workload(struct sim_group *sim, const struct cli_call *call, const struct group *group,
                         size_t *out_workload, struct fly_error *out_error)
{
    const struct job_description *job;
    const char *nearest;

    for (size_t i = 0; i < sim->workloads.count; i++) {
        if (strcmp(sim->workloads.items[i].job.name, group->dataset) == 0) {
            *out_workload = i;
            return 0;
        }
    }
    job = job_list_find(&sim->workloads.list, group->dataset);
    if (job != NULL) {
        *out_workload = sim->workloads.count;
        return sim_workloads_add(&sim->workloads, call, job, out_error);
    }
    nearest = job_list_nearest(&sim->workloads.list, group->dataset);
    return error_set(
        out_error, FLY_EDATA,
        "%s:%zu: column 'dataset': expected the name of a known job, found '%.60s'%s%s%s; describe it in a "
        "--jobs file",
        sim->file.name, group->line, group->dataset, nearest != NULL ? "; did you mean '" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

static int open_workloads(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = 0;

    sim->group_workloads = arena_alloc(&sim->arena, sim->file.count, sizeof sim->group_workloads[0]);
    if (sim->group_workloads == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < sim->file.count && code == 0; i++)
        code = find_workload(sim, call, &sim->file.groups[i], &sim->group_workloads[i], out_error);
    return code;
}

static int read_seeds(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = number_list_option(call, "seeds", 0, SEEDS_MAX, &sim->arena, &sim->seeds, &sim->seed_count,
                                  out_error);

    if (code < 0)
        return code;
    if (cli_choice(call, "generator") == GENERATOR_NUMPY && cli_given(call, "seeds"))
        return cli_usage(
            call, out_error,
            "with the generator numpy each group's seed is the Adler-32 of its name; leave out --seeds");
    if (cli_choice(call, "generator") == GENERATOR_NUMPY)
        sim->seed_count = 1;
    return 0;
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
        .seed_from_name = cli_choice(call, "generator") == GENERATOR_NUMPY,
        .parameters = sim_policy_parameters(&sim->policies, call),
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
        code = group_report_emit(call, &plan, sim->workloads.count, results, out_error);
    free(results);
    return code;
}

static int run_with_traces(struct sim_group *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = sim_workloads_open_traces(&sim->workloads, call, out_error);

    if (code < 0)
        return code;
    code = open_workloads(sim, call, out_error);
    if (code == 0)
        code = sim_policies_open(&sim->policies, call, out_error);
    if (code == 0) {
        code = simulate(sim, call, out_error);
        sim_policies_close(&sim->policies);
    }
    sim_workloads_close(&sim->workloads);
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
    .outputs = {&group_report_quantities},
    .run = sim_group_run,
};

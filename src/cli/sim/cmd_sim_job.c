/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim job`: recurring jobs replayed from recorded traces through the decision core. */
#include <math.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/options/number_list_option.h"
#include "cli/options/thread_option.h"
#include "cli/sim/objective_option.h"
#include "cli/sim/plugin_crash.h"
#include "cli/sim/policy_options.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_plot.h"
#include "cli/sim/sim_report.h"
#include "cli/sim/sim_run.h"
#include "cli/sim/sim_workloads.h"
#include "cli/sim/transfer_option.h"
#include "sim/campaign.h"
#include "sim/crew.h"
#include "sim/open/job_figures.h"
#include "sim/open/sim_objective.h"
#include "sim/try_writer.h"

enum { SEEDS_MAX = 100000, MEMORY_MAX = 64 << 20 };

/* The order is that of campaign_plan.in_order. */
static const char *const orders[] = {"drawn", "recorded", NULL};

static const struct cli_option options[] = {
    SIM_OPTIONS_TRACES,
    SIM_OPTIONS_POLICY,
    {.name = "seeds",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .default_text = "1-20",
     .key = "sim.seeds",
     .help = "Seeds, as 1-20 or 1,3,7-9; each is one simulated history of the job."},
    {.name = "recurrences",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e12,
     .key = "sim.recurrences",
     .help = "Recurrences of each job; if not given, twice its batch sizes times its power limits."},
    {.name = "drift",
     .type = CLI_CHOICE,
     .placeholder = "KIND",
     .choices = drift_names,
     .default_text = "none",
     .key = "sim.drift",
     .help =
         "Made-up drift of the epochs needed: the optimum moves slowly (shift), jumps at half time (jump) or "
         "swings (sine), or all batch sizes need 1.8 times (level) or 3 times (triple) as many from half "
         "time on, 3.5 % more in each recurrence (growth), or 1.8 times as many in the second third "
         "(up-down)."},
    {.name = "bootstrap",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = 2000,
     .default_text = "0",
     .help = "How often the recorded runs of each batch size are drawn anew from themselves, to say what so "
             "few leave open, as 100; that many times the work of ten seeds. 0: never."},
    {.name = "order",
     .type = CLI_CHOICE,
     .placeholder = "HOW",
     .choices = orders,
     .default_text = "drawn",
     .help =
         "Which recorded run a training turns out to be: drawn at random, or the next of its batch size as "
         "they were recorded, to repeat the history that 'flyball job export' wrote."},
    {.name = "overlapping",
     .type = CLI_FLAG,
     .help = "Let the policy reckon with recurrences that overlap, as it does for live jobs."},
    SIM_OPTION_ETA,
    SIM_OPTIONS_OBJECTIVE,
    SIM_OPTIONS_SEARCH,
    SIM_OPTION_PROFILE_WINDOW,
    SIM_OPTIONS_TRANSFER,
    SIM_OPTIONS_RUN,
    {.name = "plot",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw cumulative regret and the choices made over the recurrences into this SVG file."},
    SIM_OPTIONS_JOB,
};

/* The command's data while it runs. */
struct sim_job {
    struct arena arena;
    struct sim_set workloads;
    struct sim_policies policies;
    struct policy_parameters parameters;
    struct sim_transfer transfer;
    struct fly_objective objective;
    uint32_t *seeds;
    size_t seed_count;
    struct sim_run run;
    struct atomic_file plot;
};

static struct campaign_plan make_plan(struct sim_job *sim, const struct cli_call *call)
{
    struct policy_parameters parameters = sim->parameters;

    parameters.overlapping = cli_flag(call, "overlapping");
    return (struct campaign_plan){
        .workloads = sim->workloads.items,
        .workload_count = sim->workloads.count,
        .policies = sim->policies.items,
        .policy_count = sim->policies.count,
        .seeds = sim->seeds,
        .seed_count = sim->seed_count,
        .recurrences = cli_set(call, "recurrences") ? (uint64_t)cli_integer(call, "recurrences") : 0,
        .in_order = cli_choice(call, "order") == 1,
        .drift = (enum drift_kind)cli_choice(call, "drift"),
        .transfers = sim->transfer.items,
        .parameters = parameters,
        .threads = thread_option(call),
        .thread_begun = plugin_crash_thread,
        .tries = cli_set(call, "tries") ? sim_run_sink : NULL,
        .tries_context = &sim->run,
        .curves = cli_set(call, "plot"),
        .progress = sim_run_progress,
        .progress_context = &sim->run,
    };
}

/* Checks the order: a trace repeats a job's order only if it can express all that happened. */
static int check_order(const struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    return cli_choice(call, "order") == 1 ? sim_set_check_order(&sim->workloads, out_error) : 0;
}

/* If the epochs of all batch sizes grow, the job needs a higher maximum, or no try could reach its target. */
static void allow_for_drift(struct sim_job *sim, const struct cli_call *call)
{
    uint64_t recurrences = cli_set(call, "recurrences") ? (uint64_t)cli_integer(call, "recurrences") : 0;

    if (sim_set_allow_for_drift(&sim->workloads, (enum drift_kind)cli_choice(call, "drift"), recurrences))
        cli_note(call, "with this drift the greatest number of epochs is raised as the need of epochs grows");
}

/* Simulates, completes the files, and only then reports. */
static int simulate(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct campaign_plan plan = make_plan(sim, call);
    struct campaign campaign = {0};
    struct bootstrap bootstrap = {NULL};
    size_t replicates = (size_t)cli_integer(call, "bootstrap");
    int code = 0;

    if (cli_set(call, "plot"))
        code = atomic_file_open(cli_text(call, "plot"), &sim->plot, out_error);
    if (code == 0)
        code = sim_run_begin(&sim->run, call, try_header,
                             (uint64_t)plan.workload_count * plan.policy_count * plan.seed_count, out_error);
    if (code < 0)
        return code;
    code = campaign_run(&plan, &campaign, out_error);
    code = sim_run_end(&sim->run, code, out_error);
    if (code == 0 && cli_set(call, "plot"))
        code = sim_plot_commit(&plan, &campaign, &sim->plot, out_error);
    if (code == 0 && replicates > 0)
        code = bootstrap_run(&plan, &campaign, replicates, &bootstrap, out_error);
    if (code == 0)
        code = sim_report_emit(call, &plan, &campaign, &bootstrap, (unsigned)replicates, out_error);
    bootstrap_free(&bootstrap);
    campaign_free(&campaign);
    return code;
}

/* Checks that what is brought from elsewhere is, and that somebody heeds it. */
static int check_transfer(const struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    if (cli_text(call, "transfer-from") == NULL)
        return cli_source(call, "transfer-recurrences") == CLI_OPTION
                   ? cli_usage(call, out_error,
                               "--transfer-recurrences without --transfer-from brings nothing")
                   : 0;
    return sim_policies_heed_past(&sim->policies)
               ? 0
               : cli_usage(call, out_error,
                           "no policy of --policy learns from elsewhere; add bayes, or leave out "
                           "--transfer-from");
}

static int simulate_workloads(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code;

    allow_for_drift(sim, call);
    code = check_order(sim, call, out_error);
    if (code == 0)
        code = check_transfer(sim, call, out_error);
    if (code == 0)
        code = transfer_option_open(&sim->transfer, call, &sim->workloads, out_error);
    if (code < 0)
        return code;
    code = simulate(sim, call, out_error);
    atomic_file_discard(&sim->plot);
    sim_transfer_close(&sim->transfer);
    return code;
}

static int sim_job_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_job sim; /* large; the program runs one command */
    int code;

    arena_init(&sim.arena, MEMORY_MAX);
    code =
        number_list_option(call, "seeds", 0, SEEDS_MAX, &sim.arena, &sim.seeds, &sim.seed_count, out_error);
    if (code == 0)
        code = objective_option_read(call, &sim.objective, out_error);
    if (code == 0)
        code = sim_workloads_open(&sim.workloads, call, out_error);
    if (code == 0) {
        sim_objective_set(&sim.objective, sim.workloads.items, sim.workloads.count);
        code = policy_options_open(&sim.policies, &sim.parameters, call, out_error);
        if (code == 0) {
            code = simulate_workloads(&sim, call, out_error);
            sim_policies_close(&sim.policies);
        }
        sim_set_close(&sim.workloads);
    }
    arena_deinit(&sim.arena);
    return code;
}

const struct cli_command cmd_sim_job = {
    .words = "sim job",
    .summary = "replay a recurring job from recorded traces",
    .paragraphs =
        {"Replays recurring training jobs from recorded traces: each recurrence gets its batch size and "
         "power limit "
         "from the decision core, a recorded run answers, and what happened informs the next. Prints energy, "
         "time and "
         "cost against the default (default batch size, highest power limit) for the last five recurrences "
         "and for "
         "the whole run with exploration, the regret against the best choice in hindsight, the recurrence "
         "after "
         "which the search paid off, and the knobs chosen: mean, standard error, p10 and p90 over the seeds.",
         "A job whose search ends before its last recurrence (no batch size left, or twenty tries of one "
         "recurrence "
         "in vain) is a result: it is reported as such, and the exit status is 0.",
         "The tries file has the columns gpu, dataset, policy, seed, recurrence, try, batch_size, "
         "power_limit_w, "
         "reached, energy_j, time_s and cost_j; recurrence counts from 0, and so does try, through the whole "
         "run. "
         "It appears when it is complete, or not at all.",
         "A policy can be your own: a shared object that --policy names by its path (with a slash, or ending "
         "in .so), or --power-policy for the choice of power limits; flyball/plugin.h is all it needs. "
         "Configuration files cannot name one. A wrong answer or a crash of a plug-in is an error that names "
         "it."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball sim job --traces traces --gpu v100",
                  "simulate every known job with the published search"},
                 {"flyball sim job --traces traces --gpu v100 --workload librispeech --policy zeus,grid "
                  "--seeds 1-100",
                  "compare two policies on one job over a hundred seeds"},
                 {"flyball sim job --traces traces --gpu v100 --generator numpy --seeds 1 --tries tries.csv",
                  "repeat the published code's run with seed 1, try by try"},
                 {"flyball sim job --traces traces --gpu v100 --policy zeus,./mine.so",
                  "compare a policy of your own with the published search"}},
    .outputs = {&job_figures_quantities},
    .run = sim_job_run,
};

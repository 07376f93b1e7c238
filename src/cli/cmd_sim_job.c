/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim job`: recurring jobs replayed from recorded traces through the decision core. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/error.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/number_list.h"
#include "cli/sim_options.h"
#include "cli/sim_plot.h"
#include "cli/sim_report.h"
#include "cli/sim_workloads.h"
#include "sim/campaign.h"

enum { SEEDS_MAX = 100000, MEMORY_MAX = 64 << 20 };

enum { POLICY_DEFAULT, POLICY_GRID, POLICY_ZEUS, POLICY_ORACLE, POLICY_COUNT };
static const char *const policy_names[] = {"default", "grid", "zeus", "oracle", NULL};

static const struct batch_policy *const policies[POLICY_COUNT] = {
    [POLICY_DEFAULT] = &batch_policy_default,
    [POLICY_GRID] = &batch_policy_grid,
    [POLICY_ZEUS] = &batch_policy_zeus,
    [POLICY_ORACLE] = NULL, /* told the optimum by the simulator */
};

static const char *const generator_names[] = {
    [GENERATOR_PHILOX] = "philox", [GENERATOR_NUMPY] = "numpy", NULL};

static const struct cli_option options[] = {
    SIM_OPTIONS_TRACES,
    {.name = "policy",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .choices = policy_names,
     .default_text = "zeus",
     .key = "sim.policy",
     .help = "Policies to compare; default and oracle are always computed."},
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
    SIM_OPTION_ETA,
    {.name = "beta",
     .type = CLI_REAL,
     .placeholder = "FACTOR",
     .minimum = 0,
     .above_minimum = true,
     .maximum = INFINITY,
     .infinite = true,
     .default_text = "2",
     .key = "beta",
     .help = "Stop a try at this multiple of the least cost so far; inf for never."},
    {.name = "window",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = POLICY_WINDOW_MAX,
     .default_text = "0",
     .key = "window",
     .help = "Newest observations of a batch size that count, to follow drift; 0 for all."},
    {.name = "generator",
     .type = CLI_CHOICE,
     .placeholder = "NAME",
     .choices = generator_names,
     .default_text = "philox",
     .key = "sim.generator",
     .help = "Random numbers: philox (policies share their luck), or numpy to repeat runs of the published "
             "code."},
    {.name = "threads",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = CAMPAIGN_THREADS_MAX,
     .key = "sim.threads",
     .help = "Worker threads; if not given, one for each processor."},
    {.name = "tries",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Write every try of the policies named by --policy to this CSV file."},
    {.name = "plot",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw cumulative regret and the choices made over the recurrences into this SVG file."},
    SIM_OPTIONS_JOB,
};

/* Everything the command holds while it runs. */
struct sim_job {
    struct arena arena;
    struct sim_workloads workloads;
    struct campaign_policy chosen[POLICY_COUNT];
    size_t chosen_count;
    uint32_t *seeds;
    size_t seed_count;
    struct atomic_file tries;
    struct atomic_file plot;
    struct progress progress;
};

/* The policies asked for, then those that are always computed. */
static void choose_policies(struct sim_job *sim, const struct cli_call *call)
{
    static const int always[] = {POLICY_DEFAULT, POLICY_ORACLE};
    const struct cli_list *asked = cli_list(call, "policy");
    bool chosen[POLICY_COUNT] = {false};

    for (size_t i = 0; i < asked->count; i++) {
        int policy = asked->choices[i];

        chosen[policy] = true;
        sim->chosen[sim->chosen_count++] =
            (struct campaign_policy){policy_names[policy], policies[policy], .writes_tries = true};
    }
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        if (!chosen[always[i]])
            sim->chosen[sim->chosen_count++] =
                (struct campaign_policy){policy_names[always[i]], policies[always[i]], .writes_tries = false};
    }
}

static int write_tries(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    struct sim_job *sim = context;

    if (fwrite(bytes, 1, count, sim->tries.stream) == count)
        return 0;
    /* Commit tells the cause; it fails because this write has failed. */
    return atomic_file_commit(&sim->tries, out_error);
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct sim_job *sim = context;

    (void)total;
    progress_add(&sim->progress, done - sim->progress.done);
    progress_tick(&sim->progress);
}

static unsigned thread_count(const struct cli_call *call)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (cli_set(call, "threads"))
        return (unsigned)cli_integer(call, "threads");
    return processors < 1                      ? 1
           : processors > CAMPAIGN_THREADS_MAX ? CAMPAIGN_THREADS_MAX
                                               : (unsigned)processors;
}

static struct campaign_plan make_plan(struct sim_job *sim, const struct cli_call *call)
{
    return (struct campaign_plan){
        .workloads = sim->workloads.items,
        .workload_count = sim->workloads.count,
        .policies = sim->chosen,
        .policy_count = sim->chosen_count,
        .seeds = sim->seeds,
        .seed_count = sim->seed_count,
        .recurrences = cli_set(call, "recurrences") ? (uint64_t)cli_integer(call, "recurrences") : 0,
        .parameters = {.beta = cli_real(call, "beta"),
                       .window = (uint32_t)cli_integer(call, "window"),
                       .generator = (enum generator)cli_choice(call, "generator")},
        .threads = thread_count(call),
        .tries = cli_set(call, "tries") ? write_tries : NULL,
        .tries_context = sim,
        .curves = cli_set(call, "plot"),
        .progress = show_progress,
        .progress_context = sim,
    };
}

/* Opens what was asked for before the long work begins. */
static int open_files(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = 0;

    if (cli_set(call, "tries"))
        code = atomic_file_open(cli_text(call, "tries"), &sim->tries, out_error);
    if (code == 0 && cli_set(call, "plot"))
        code = atomic_file_open(cli_text(call, "plot"), &sim->plot, out_error);
    if (code == 0 && sim->tries.stream != NULL)
        fputs(campaign_tries_header, sim->tries.stream);
    return code;
}

/* Simulates, completes the files, and only then reports. */
static int simulate(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct campaign_plan plan = make_plan(sim, call);
    struct campaign campaign;
    int code = open_files(sim, call, out_error);

    if (code < 0)
        return code;
    cli_progress_begin(call, &sim->progress, "simulations",
                       (uint64_t)plan.workload_count * plan.policy_count * plan.seed_count);
    code = campaign_run(&plan, &campaign, out_error);
    progress_end(&sim->progress);
    if (code < 0)
        return code;
    if (cli_set(call, "tries"))
        code = atomic_file_commit(&sim->tries, out_error);
    if (code == 0 && cli_set(call, "plot"))
        code = sim_plot_commit(&plan, &campaign, &sim->plot, out_error);
    if (code == 0)
        code = sim_report_emit(call, &plan, &campaign, out_error);
    campaign_free(&campaign);
    return code;
}

static int read_seeds(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const char *text = cli_text(call, "seeds");
    struct fly_error error;
    int code = number_list_parse(text, 0, SEEDS_MAX, &sim->arena, &sim->seeds, &sim->seed_count, &error);

    if (code == FLY_EUSAGE)
        return cli_value_error(call, "seeds", text, error.text, out_error);
    return code < 0 ? error_no_memory(out_error) : 0;
}

static int sim_job_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_job sim; /* large; the program runs one command */
    int code;

    arena_init(&sim.arena, MEMORY_MAX);
    code = read_seeds(&sim, call, out_error);
    if (code == 0)
        code = sim_workloads_open(&sim.workloads, call, out_error);
    if (code == 0) {
        choose_policies(&sim, call);
        code = simulate(&sim, call, out_error);
        atomic_file_discard(&sim.tries);
        atomic_file_discard(&sim.plot);
        sim_workloads_close(&sim.workloads);
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
         "reached, energy_j, time_s and cost_j. It appears when it is complete, or not at all."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball sim job --traces traces --gpu v100",
                  "simulate every known job with the published search"},
                 {"flyball sim job --traces traces --gpu v100 --workload librispeech --policy zeus,grid "
                  "--seeds 1-100",
                  "compare two policies on one job over a hundred seeds"},
                 {"flyball sim job --traces traces --gpu v100 --generator numpy --seeds 1 --tries tries.csv",
                  "repeat the published code's run with seed 1, try by try"}},
    .run = sim_job_run,
};

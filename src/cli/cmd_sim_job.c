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
#include "cli/job_list.h"
#include "cli/number_list.h"
#include "cli/sim_report.h"
#include "sim/campaign.h"

enum { SEEDS_MAX = 100000, MEMORY_MAX = 64 << 20, NOTE_MAX = 4096, WORKLOADS_MAX = JOB_LIST_MAX };

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
    {.name = "traces",
     .type = CLI_TEXT,
     .placeholder = "DIR",
     .key = "sim.traces",
     .help = "Directory with summary_train.csv and summary_power_GPU.csv."},
    {.name = "gpu",
     .alias = "gpu-model",
     .type = CLI_TEXT,
     .placeholder = "NAME",
     .key = "sim.gpu",
     .help = "GPU whose power trace is replayed, as in the file's name."},
    {.name = "workload",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .default_text = "all",
     .key = "sim.workload",
     .help = "Jobs to simulate, or all that the traces have: the six of the Zeus paper by dataset name, and "
             "those of "
             "--jobs."},
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
    {.name = "eta",
     .type = CLI_REAL,
     .placeholder = "WEIGHT",
     .minimum = 0,
     .maximum = 1,
     .default_text = "0.5",
     .key = "eta",
     .help = "Weight of energy against time in the cost, from 0 (time) to 1 (energy)."},
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
    {.name = "jobs",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .key = "sim.jobs",
     .help = "Job file: a section per job with dataset, network, optimizer, target_metric, max_epochs, "
             "default_batch_size and, optionally, batch_sizes."},
    {.name = "dataset",
     .type = CLI_TEXT,
     .placeholder = "NAME",
     .help = "Dataset of the one workload in the traces; these last options describe a job or change a known "
             "one."},
    {.name = "network", .type = CLI_TEXT, .placeholder = "NAME", .help = "Its network in the traces."},
    {.name = "optimizer", .type = CLI_TEXT, .placeholder = "NAME", .help = "Its optimizer in the traces."},
    {.name = "target-metric",
     .type = CLI_REAL,
     .placeholder = "VALUE",
     .minimum = -INFINITY,
     .maximum = INFINITY,
     .help = "Its target, exactly as in the traces."},
    {.name = "max-epochs",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 4294967295.0,
     .help = "Epochs after which a try has failed."},
    {.name = "default-batch-size",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 4294967295.0,
     .help = "Its batch size today, from which the search starts."},
    {.name = "batch-sizes",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .help = "Its batch sizes to choose from, as 8,16,32; all in the traces if not given."},
};

/* Options that describe the one workload, and the field of a job file that each stands for. */
static const struct {
    const char *option, *field;
} description_options[] = {
    {"dataset", "dataset"},         {"network", "network"},
    {"optimizer", "optimizer"},     {"target-metric", "target_metric"},
    {"max-epochs", "max_epochs"},   {"default-batch-size", "default_batch_size"},
    {"batch-sizes", "batch_sizes"},
};
enum { DESCRIPTION_COUNT = sizeof description_options / sizeof description_options[0] };

/* Everything the command holds while it runs. */
struct sim_job {
    struct arena arena;
    struct job_list list;
    struct trace trace;
    bool trace_is_open;
    struct workload workloads[WORKLOADS_MAX];
    size_t workload_count;
    struct campaign_policy chosen[POLICY_COUNT];
    size_t chosen_count;
    uint32_t *seeds;
    size_t seed_count;
    struct atomic_file tries;
    struct progress progress;
};

static bool describes_a_job(const struct cli_call *call)
{
    for (size_t i = 0; i < DESCRIPTION_COUNT; i++) {
        if (cli_given(call, description_options[i].option))
            return true;
    }
    return false;
}

/* Applies --dataset and the like to the one workload, which may be new. */
static int describe(struct sim_job *sim, const struct cli_call *call, const char *name,
                    struct fly_error *out_error)
{
    struct job_description *job = job_list_find(&sim->list, name);
    int code = job == NULL ? job_list_add(&sim->list, name, &job, out_error) : 0;

    for (size_t i = 0; i < DESCRIPTION_COUNT && code == 0; i++) {
        const char *option = description_options[i].option;

        if (cli_given(call, option))
            code = job_list_set_field(&sim->list, job, description_options[i].field, cli_text(call, option),
                                      cli_origin(call, option), FLY_EUSAGE, out_error);
    }
    if (code == 0 && cli_given(call, "default-batch-size"))
        job->default_fits_gpu = false;
    return code == 0 ? job_list_check(job, cli_origin(call, "workload"), FLY_EUSAGE, out_error) : code;
}

static void note_left_out(const struct sim_job *sim, const struct cli_call *call,
                          const struct workload *workload)
{
    struct buffer sizes;

    buffer_init(&sizes, NOTE_MAX);
    for (size_t i = 0; i < workload->left_out_count; i++)
        buffer_printf(&sizes, "%s%u", i > 0 ? ", " : "", workload->left_out[i]);
    if (workload->left_out_count > 0)
        cli_note(call, "%s: batch sizes of %s without power rows are left out: %s", sim->trace.power_path,
                 workload->job.name, sizes.data);
    buffer_deinit(&sizes);
}

static int add_workload(struct sim_job *sim, const struct cli_call *call, const struct job_description *job,
                        struct fly_error *out_error)
{
    struct workload *workload = &sim->workloads[sim->workload_count];
    int code = workload_open(workload, &sim->trace, job, out_error);

    if (code < 0)
        return code;
    workload->spec.eta = cli_real(call, "eta");
    sim->workload_count++;
    note_left_out(sim, call, workload);
    return 0;
}

static int add_named(struct sim_job *sim, const struct cli_call *call, const char *name,
                     struct fly_error *out_error)
{
    const struct job_description *job = job_list_find(&sim->list, name);
    const char *nearest = job_list_nearest(&sim->list, name);

    if (job != NULL)
        return add_workload(sim, call, job, out_error);
    return cli_usage(call, out_error,
                     "unknown workload '%s'%s%s%s; describe it with --network, --optimizer, "
                     "--target-metric, --max-epochs and --default-batch-size or in a --jobs file",
                     name, nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "'?" : "");
}

/* All jobs that the trace has; the others are said. */
static int add_all(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    struct buffer absent;
    int code = 0;

    buffer_init(&absent, NOTE_MAX);
    for (size_t i = 0; i < sim->list.count && code == 0; i++) {
        const struct job_description *job = &sim->list.jobs[i];

        if (workload_in_trace(&sim->trace, job))
            code = add_workload(sim, call, job, out_error);
        else
            buffer_printf(&absent, "%s%s", absent.length > 0 ? ", " : "", job->name);
    }
    if (code == 0 && sim->workload_count == 0)
        code = error_set(
            out_error, FLY_ENOTFOUND,
            "%s: none of the known jobs is in the traces (%s); describe one with --workload, --network, "
            "--optimizer, --target-metric, --max-epochs and --default-batch-size",
            sim->trace.power_path, absent.data);
    else if (code == 0 && absent.length > 0)
        cli_note(call, "%s: jobs that are not in the traces are left out: %s", sim->trace.power_path,
                 absent.data);
    buffer_deinit(&absent);
    return code;
}

static int open_workloads(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct cli_list *names = cli_list(call, "workload");
    bool all = names->count == 1 && strcmp(names->words[0], "all") == 0;
    int code = 0;

    if (describes_a_job(call)) {
        if (all || names->count != 1)
            return cli_usage(call, out_error,
                             "options that describe a job need one --workload NAME to describe, not '%s'",
                             cli_text(call, "workload"));
        code = describe(sim, call, names->words[0], out_error);
    }
    if (all)
        return add_all(sim, call, out_error);
    for (size_t i = 0; i < names->count && code == 0; i++)
        code = add_named(sim, call, names->words[i], out_error);
    return code;
}

static int open_traces(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const char *traces = cli_text(call, "traces"), *gpu = cli_text(call, "gpu"),
               *jobs = cli_text(call, "jobs");
    int code = 0;

    if (traces == NULL)
        return cli_usage(call, out_error, "no traces given; name their directory with --traces DIR");
    if (gpu == NULL)
        return cli_usage(call, out_error, "no GPU given; name one of the traces with --gpu NAME, as in v100");
    if (jobs != NULL)
        code = job_list_load(&sim->list, jobs, out_error);
    if (code == 0)
        code = trace_open(&sim->trace, traces, gpu, out_error);
    sim->trace_is_open = code == 0;
    return code;
}

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
        .workloads = sim->workloads,
        .workload_count = sim->workload_count,
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
        .progress = show_progress,
        .progress_context = sim,
    };
}

/* Simulates, completes the tries file, and only then reports. */
static int simulate(struct sim_job *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct campaign_plan plan = make_plan(sim, call);
    struct campaign campaign;
    int code = 0;

    if (cli_set(call, "tries"))
        code = atomic_file_open(cli_text(call, "tries"), &sim->tries, out_error);
    if (code == 0 && sim->tries.stream != NULL)
        fputs(campaign_tries_header, sim->tries.stream);
    if (code < 0)
        return code;
    cli_progress_begin(call, &sim->progress, "simulations",
                       (uint64_t)plan.workload_count * plan.policy_count * plan.seed_count);
    code = campaign_run(&plan, &campaign, out_error);
    progress_end(&sim->progress);
    if (code < 0) {
        atomic_file_discard(&sim->tries);
        return code;
    }
    if (cli_set(call, "tries"))
        code = atomic_file_commit(&sim->tries, out_error);
    if (code == 0)
        code = sim_report_emit(call, &plan, &campaign, out_error);
    campaign_free(&campaign);
    return code;
}

static int sim_job_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_job sim; /* large; the program runs one command */
    int code;

    arena_init(&sim.arena, MEMORY_MAX);
    job_list_init(&sim.list);
    code = number_list_parse(cli_text(call, "seeds"), cli_origin(call, "seeds"), 0, SEEDS_MAX, &sim.arena,
                             &sim.seeds, &sim.seed_count, out_error);
    if (code == 0)
        code = open_traces(&sim, call, out_error);
    if (code == 0)
        code = open_workloads(&sim, call, out_error);
    if (code == 0) {
        choose_policies(&sim, call);
        code = simulate(&sim, call, out_error);
    }
    for (size_t i = 0; i < sim.workload_count; i++)
        workload_close(&sim.workloads[i]);
    if (sim.trace_is_open)
        trace_close(&sim.trace);
    job_list_deinit(&sim.list);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim compare`: policies side by side over jobs, GPUs, seeds and horizons. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/math/order.h"
#include "base/text/number_list.h"
#include "cli/frame/call.h"
#include "cli/options/output_path.h"
#include "cli/options/small_options.h"
#include "cli/sim/compare_report.h"
#include "cli/sim/plugin_crash.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_plot.h"
#include "cli/sim/sim_workloads.h"
#include "sim/campaign.h"
#include "sim/open/compare_jobs.h"
#include "sim/open/sim_objective.h"
#include "sim/scenario.h"
#include "sim/try_writer.h"

static int choose_gpus(const struct cli_call *call, struct arena *arena, struct compare_gpus *gpus,
                       struct fly_error *out_error)
{
    const struct cli_list *asked = cli_list(call, "gpu");

    if (asked->count == 0)
        return compare_gpus_list(cli_text(call, "traces"), arena, gpus, out_error);
    if (asked->count > COMPARE_GPUS_MAX)
        return cli_usage(call, out_error, "%zu GPUs; expected at most %d", asked->count, COMPARE_GPUS_MAX);
    for (size_t i = 0; i < asked->count; i++)
        gpus->names[gpus->count++] = asked->words[i];
    return 0;
}

/* Opens the traces' jobs on every GPU. */
static int open_traces(struct compare_jobs *jobs, const struct cli_call *call, struct fly_error *out_error)
{
    struct compare_gpus gpus = {.count = 0};
    int code;

    if (!cli_set(call, "traces") && cli_list(call, "gpu")->count == 0)
        return 0;
    if (!cli_set(call, "traces"))
        return cli_usage(call, out_error, "--gpu without traces; name their directory with --traces DIR");
    code = choose_gpus(call, &jobs->arena, &gpus, out_error);
    for (size_t i = 0; i < gpus.count && code == 0; i++) {
        code = sim_workloads_open_of(&jobs->sets[i], call, gpus.names[i], out_error);
        jobs->set_count += code == 0;
    }
    return code;
}

static struct compare_synthetic read_synthetic(const struct cli_call *call, uint32_t number)
{
    const struct cli_list *kinds = cli_list(call, "synthetic");
    struct compare_synthetic synthetic = {
        .kind_count = kinds->count, .number = number, .eta = cli_real(call, "eta")};

    for (size_t i = 0; i < kinds->count; i++)
        synthetic.kinds[i] = (enum synthetic_kind)kinds->choices[i];
    return synthetic;
}

/*
 * The jobs of `flyball sim compare`: those of the traces on every GPU, then `synthetic` jobs of each kind.
 * With `each`, every job is a set too. Options read: --traces, --gpu and those of sim_workloads_open;
 * --synthetic;
 * --eta. Call compare_jobs_close only after success.
 */
static int compare_options_open(struct compare_jobs *jobs, const struct cli_call *call, uint32_t synthetic,
                                bool each, struct fly_error *out_error)
{
    const struct compare_synthetic made = read_synthetic(call, synthetic);
    int code;

    compare_jobs_init(jobs);
    code = open_traces(jobs, call, out_error);
    if (code == 0 && jobs->set_count == 0 && synthetic * made.kind_count == 0)
        code =
            cli_usage(call, out_error, "no jobs; name traces with --traces DIR, or kinds with --synthetic");
    if (code == 0)
        code = compare_jobs_collect(jobs, &made, each, out_error);
    for (size_t i = 0; i < jobs->left_out_count && code == 0; i++)
        cli_warn(call, "%s is left out: its default batch size never reaches the target", jobs->left_out[i]);
    if (code < 0)
        compare_jobs_close(jobs);
    return code;
}

enum { SEEDS_MAX = 10000, HORIZONS_MAX = 16, DRAWN_MAX = 32, MEMORY_MAX = 1 << 20 };

/* How much is compared if nothing else is said. */
static const struct scale {
    const char *seeds, *horizons;
    uint32_t synthetic_jobs; /* of each kind */
} whole = {"1-200", "10,25,50,100", 10}, quick = {"1-20", "10,50", 4};

static const struct cli_option options[] = {
    SIM_OPTION_TRACES,
    {.name = "gpu",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .help = "GPUs whose power traces are replayed; if not given, all in the directory."},
    SIM_OPTION_WORKLOAD,
    {.name = "synthetic",
     .type = CLI_LIST,
     .placeholder = "KIND",
     .choices = synthetic_names,
     .default_text = "smooth,noisy,cliff,bumpy,flat,far",
     .help = "Kinds of synthetic jobs to compare on, besides those of the traces."},
    {.name = "synthetic-jobs",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = COMPARE_SYNTHETIC_MAX,
     .help = "Synthetic jobs of each kind, 0 for none; if not given, 10, with --quick 4."},
    {.name = "policy",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .choices = sim_policy_names,
     .paths = true,
     .default_text = "zeus,bayes,zeus-one-round,hill-climb,bandit",
     .help = "Policies to compare; default and oracle are always computed."},
    SIM_OPTION_POWER_POLICY,
    {.name = "against",
     .type = CLI_TEXT,
     .placeholder = "NAME",
     .help = "Policy that the others are compared with; if not given, the first of --policy."},
    {.name = "seeds",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .help = "Seeds, as 1-20 or 1,3,7-9; each is one simulated history of every job. If not given, 1-200, "
             "with --quick 1-20."},
    {.name = "horizons",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .help = "Recurrences after which figures are taken, the last ends the histories. If not given, "
             "10,25,50,100, with --quick 10,50."},
    {.name = "scenario",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .choices = scenario_names,
     .default_text = "steady",
     .help = "What happens to the jobs over their recurrences; each scenario has rows of its own, and 'all' "
             "stands for every one."},
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw the regret over the recurrences, its ratio for each job, and the worst runs into this SVG "
             "file."},
    {.name = "each", .type = CLI_FLAG, .help = "Give every job rows of its own too."},
    {.name = "quick", .type = CLI_FLAG, .help = "Compare on less, within a minute."},
    SIM_OPTION_ETA,
    SIM_OPTIONS_OBJECTIVE,
    SIM_OPTIONS_SEARCH,
    {.name = "profile-window",
     .type = CLI_TEXT,
     .placeholder = "SHARE",
     .default_text = "100%",
     .help =
         "Share of a batch size's first epoch that measuring its power limits takes, as 10%; a policy that "
         "leaves the batch size after that pays no more."},
    SIM_OPTIONS_RUN,
    SIM_OPTIONS_JOB,
};

/* The command's data while it runs. */
struct sim_compare {
    struct arena arena;
    const struct scale *scale;
    struct compare_jobs jobs;
    struct sim_policies policies;
    struct policy_parameters parameters;
    struct fly_objective objective;
    uint32_t *seeds;
    size_t seed_count;
    uint64_t horizons[HORIZONS_MAX];
    size_t horizon_count;
    uint64_t samples[HORIZONS_MAX + DRAWN_MAX]; /* the horizons, and what the picture shows between them */
    size_t sample_count;
    enum scenario_kind scenarios[SCENARIO_COUNT];
    size_t scenario_count;
    struct compare_report report;
    struct compare_plot plot;
    struct sim_run run;
    uint64_t done; /* simulations of the scenarios before this one */
};

/* Reads a list of numbers, or the scale's if the option is not given. */
static int read_list(struct sim_compare *sim, const struct cli_call *call, const char *name,
                     const char *otherwise, size_t most, uint32_t **out_numbers, size_t *out_count,
                     struct fly_error *out_error)
{
    uint32_t minimum = strcmp(name, "horizons") == 0;

    return cli_set(call, name)
               ? number_list_option(call, name, minimum, most, &sim->arena, out_numbers, out_count, out_error)
               : number_list_parse(otherwise, minimum, most, &sim->arena, out_numbers, out_count, out_error);
}

static int read_numbers(struct sim_compare *sim, const struct cli_call *call, struct fly_error *out_error)
{
    uint32_t *horizons = NULL;
    int code;

    sim->scale = cli_flag(call, "quick") ? &quick : &whole;
    code =
        read_list(sim, call, "seeds", sim->scale->seeds, SEEDS_MAX, &sim->seeds, &sim->seed_count, out_error);
    if (code == 0)
        code = read_list(sim, call, "horizons", sim->scale->horizons, HORIZONS_MAX, &horizons,
                         &sim->horizon_count, out_error);
    if (code < 0 || horizons == NULL)
        return code;
    qsort(horizons, sim->horizon_count, sizeof horizons[0], order_u32);
    for (size_t i = 0; i < sim->horizon_count; i++)
        sim->horizons[i] = horizons[i];
    return 0;
}

/* Returns the index of a policy by its name; the count if there is none. */
static size_t find_policy(const struct sim_policies *policies, const char *name)
{
    size_t i = 0;

    while (i < policies->count && strcmp(policies->items[i].name, name) != 0)
        i++;
    return i;
}

static int find_rival(const struct sim_compare *sim, const struct cli_call *call, size_t *out_rival,
                      struct fly_error *out_error)
{
    const char *name = cli_set(call, "against") ? cli_text(call, "against") : sim->policies.items[0].name;

    *out_rival = find_policy(&sim->policies, name);
    if (*out_rival == sim->policies.count)
        return cli_value_error(call, "against", name,
                               "the name of one of the policies that --policy compares", out_error);
    return 0;
}

/* Adds the samples of the picture to the horizons. */
static void choose_samples(struct sim_compare *sim, const struct cli_call *call)
{
    uint64_t drawn[DRAWN_MAX];
    size_t drawn_count = 0, d = 0;

    if (cli_set(call, "svg"))
        drawn_count = curve_positions(sim->horizons[sim->horizon_count - 1], DRAWN_MAX, drawn);
    sim->sample_count = 0;
    for (size_t h = 0; h < sim->horizon_count; h++) {
        for (; d < drawn_count && drawn[d] <= sim->horizons[h]; d++) {
            if (drawn[d] < sim->horizons[h])
                sim->samples[sim->sample_count++] = drawn[d];
        }
        sim->samples[sim->sample_count++] = sim->horizons[h];
    }
}

static int read_scenarios(struct sim_compare *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct cli_list *asked = cli_list(call, "scenario");

    sim->scenario_count = 0;
    for (size_t i = 0; i < asked->count; i++) {
        if (asked->choices[i] == SCENARIO_COUNT && asked->count > 1)
            return cli_usage(call, out_error,
                             "scenario 'all' stands for every one; leave out the other names");
        if (asked->choices[i] != SCENARIO_COUNT)
            sim->scenarios[sim->scenario_count++] = (enum scenario_kind)asked->choices[i];
    }
    for (int kind = 0; kind < SCENARIO_COUNT && asked->choices[0] == SCENARIO_COUNT; kind++)
        sim->scenarios[sim->scenario_count++] = (enum scenario_kind)kind;
    if (cli_set(call, "tries") && sim->scenario_count > 1)
        return cli_usage(call, out_error, "--tries with several scenarios; name one with --scenario");
    return 0;
}

static int report_progress(void *context, uint64_t done, uint64_t total)
{
    struct sim_compare *sim = context;

    return sim_run_progress(&sim->run, sim->done + done, total);
}

static struct campaign_plan make_plan(struct sim_compare *sim, const struct cli_call *call)
{
    return (struct campaign_plan){
        .workloads = sim->jobs.items,
        .workload_count = sim->jobs.count,
        .policies = sim->policies.items,
        .policy_count = sim->policies.count,
        .seeds = sim->seeds,
        .seed_count = sim->seed_count,
        .recurrences = sim->horizons[sim->horizon_count - 1],
        .rest_at_default = true,
        .parameters = sim->parameters,
        .threads = thread_option(call),
        .thread_begun = plugin_crash_thread,
        .tries = cli_set(call, "tries") ? sim_run_sink : NULL,
        .tries_context = &sim->run,
        .curves = true,
        .horizons = sim->samples,
        .horizon_count = sim->sample_count,
        .progress = report_progress,
        .progress_context = sim,
    };
}

/* Runs one scenario and adds its rows. */
static int compare_in(struct sim_compare *sim, const struct cli_call *call, enum scenario_kind kind,
                      struct fly_error *out_error)
{
    struct campaign_plan plan = make_plan(sim, call);
    struct campaign campaign = {0};
    struct scenario scenario;
    struct compare_run run = {.scenario = scenario_names[kind],
                              .plan = &plan,
                              .campaign = &campaign,
                              .sets = sim->jobs.rows,
                              .set_count = sim->jobs.row_count,
                              .horizons = sim->horizons,
                              .horizon_count = sim->horizon_count,
                              .standard = find_policy(&sim->policies, "default")};
    int code = find_rival(sim, call, &run.rival, out_error);

    if (code == 0)
        code = scenario_begin(&scenario, kind, &plan, out_error);
    if (code < 0)
        return code;
    code = campaign_run(&plan, &campaign, out_error);
    if (code == 0)
        code = compare_report_add(&sim->report, &run, out_error);
    if (code == 0 && cli_set(call, "svg"))
        code = compare_plot_add(&sim->plot, &run, out_error);
    sim->done += (uint64_t)plan.workload_count * plan.policy_count * plan.seed_count;
    campaign_free(&campaign);
    scenario_end(&scenario);
    return code;
}

/* The picture comes first: the report is printed only when everything that was asked for is there. */
static int show(struct sim_compare *sim, const struct cli_call *call, const struct campaign_plan *plan,
                size_t rival, struct fly_error *out_error)
{
    const char *seeds = cli_set(call, "seeds") ? cli_text(call, "seeds") : sim->scale->seeds;
    struct atomic_file file;
    int code = 0;

    if (cli_set(call, "svg")) {
        code = output_path_open(cli_text(call, "svg"), &file, out_error);
        if (code == 0)
            code = compare_plot_commit(&sim->plot, &file, out_error);
    }
    return code == 0 ? compare_report_emit(&sim->report, plan, rival, seeds, out_error) : code;
}

static int compare(struct sim_compare *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct campaign_plan plan = make_plan(sim, call);
    size_t rival;
    int code = find_rival(sim, call, &rival, out_error);

    if (code == 0)
        code = sim_run_begin(&sim->run, call, try_header,
                             (uint64_t)plan.workload_count * plan.policy_count * plan.seed_count *
                                 sim->scenario_count,
                             out_error);
    if (code < 0)
        return code;
    compare_report_begin(&sim->report, call);
    compare_plot_begin(&sim->plot);
    for (size_t i = 0; i < sim->scenario_count && code == 0; i++)
        code = compare_in(sim, call, sim->scenarios[i], out_error);
    code = sim_run_end(&sim->run, code, out_error);
    if (code == 0)
        code = show(sim, call, &plan, rival, out_error);
    picture_drop(&sim->plot.picture);
    compare_report_end(&sim->report);
    return code;
}

static int compare_on_jobs(struct sim_compare *sim, const struct cli_call *call, struct fly_error *out_error)
{
    uint32_t synthetic = cli_set(call, "synthetic-jobs") ? (uint32_t)cli_integer(call, "synthetic-jobs")
                                                         : sim->scale->synthetic_jobs;
    int code = objective_option_read(call, &sim->objective, out_error);

    if (code == 0)
        code = compare_options_open(&sim->jobs, call, synthetic, cli_flag(call, "each"), out_error);
    if (code < 0)
        return code;
    sim_objective_set(&sim->objective, sim->jobs.items, sim->jobs.count);
    code = policy_options_open(&sim->policies, &sim->parameters, call, out_error);
    if (code == 0) {
        code = compare(sim, call, out_error);
        sim_policies_close(&sim->policies);
    }
    compare_jobs_close(&sim->jobs);
    return code;
}

static int sim_compare_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_compare sim; /* large; the program runs one command */
    int code;

    arena_init(&sim.arena, MEMORY_MAX);
    code = read_numbers(&sim, call, out_error);
    if (code == 0)
        code = read_scenarios(&sim, call, out_error);
    if (code == 0)
        choose_samples(&sim, call);
    if (code == 0)
        code = compare_on_jobs(&sim, call, out_error);
    arena_deinit(&sim.arena);
    return code;
}

const struct cli_command cmd_sim_compare = {
    .words = "sim compare",
    .summary = "judge policies side by side over many jobs",
    .paragraphs =
        {"Runs every policy on every job with every seed: the jobs of the traces on each of their GPUs, and "
         "synthetic jobs of six kinds, which need no traces. A seed gives every policy the same luck. "
         "Prints, "
         "after so many recurrences each, the regret against the best choice in hindsight (mean over jobs, "
         "p90, p99 and worst run), how it compares with one of the policies (ratio of the means with its 95 "
         "% "
         "interval by the bootstrap over workloads, jobs won, paired runs won), and energy, time and score "
         "against the default.",
         "The kinds of synthetic jobs: smooth (the critical-batch-size law), noisy, cliff (beyond some batch "
         "size no run reaches the target), bumpy, flat (every choice has nearly the same score), and far "
         "(the "
         "best "
         "batch size is octaves away from the default). They follow from kind and number alone; nothing of "
         "them was measured.",
         "With --scenario the jobs change over their recurrences: drifts of the optimum (shift, jump, sine) "
         "or of all scores (level, triple, growth, up-down), recurrences that start together (burst-2, "
         "burst-4, "
         "burst-8), larger batch sizes that do not fit (memory), trials that crash (crashes), and a learning "
         "rate tuned for the default (learning-rate), or a bound on the slowdown (bound-3, bound-10). "
         "Policies that learn from elsewhere bring what another "
         "GPU "
         "(other-gpu, other-gpu-2) or another weight of energy (other-eta) showed, or what misleads "
         "(wrong-job, wrong-up, wrong-down). A search that ends early has the score of the default "
         "from there on.",
         "A policy of your own is judged with one command: --policy zeus,./mine.so. In JSON and CSV there "
         "are "
         "further figures, such as the job that loses most against the policy compared with, and the job "
         "that "
         "has the worst score against the default."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball sim compare --quick", "compare the searches that Flyball has, within a minute"},
                 {"flyball sim compare --traces traces --profile-window 10% --policy zeus,grid",
                  "compare two policies on traces of every GPU and on synthetic jobs"},
                 {"flyball sim compare --quick --scenario growth,burst-4 --policy zeus,bayes",
                  "compare where all scores grow, and where four recurrences start together"},
                 {"flyball sim compare --quick --policy zeus,./mine.so --each --format csv",
                  "judge a policy of your own, job by job"}},
    .outputs = {&compare_rows_quantities},
    .run = sim_compare_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim job`: recurring jobs replayed from recorded traces through the decision core. */
#include <math.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/options/output_path.h"
#include "cli/options/small_options.h"
#include "cli/sim/plugin_crash.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_plot.h"
#include "cli/sim/sim_workloads.h"
#include "sim/bootstrap.h"
#include "sim/campaign.h"
#include "sim/crew.h"
#include "sim/open/job_figures.h"
#include "sim/open/sim_objective.h"
#include "sim/open/sim_transfer.h"
#include "sim/try_writer.h"

static const double normal_95 = 1.96;

enum { TEXT_MAX = 64 << 20, CELL_WIDTH = 40, CELL_MAX = 96 };

/* Adds all settings that are needed to repeat the figures. */
static void add_settings(struct table *table, const struct cli_call *call, const struct campaign_plan *plan)
{
    json_t *settings = json_object();
    bool stops = isfinite(plan->parameters.beta);

    json_object_set_new(settings, "traces", json_string(cli_text(call, "traces")));
    json_object_set_new(settings, "seeds", json_string(cli_text(call, "seeds")));
    json_object_set_new(settings, "drift", json_string(cli_text(call, "drift")));
    json_object_set_new(settings, "eta", json_real(plan->workloads[0].spec.eta));
    if (cli_set(call, "objective"))
        json_object_set_new(settings, "objective", json_string(cli_text(call, "objective")));
    if (isfinite(sim_objective_bound(&plan->workloads[0].spec)))
        json_object_set_new(settings, "max_slowdown",
                            json_real(sim_objective_bound(&plan->workloads[0].spec)));
    json_object_set_new(settings, "beta", stops ? json_real(plan->parameters.beta) : json_null());
    if (!stops)
        json_object_set_new(settings, "beta_unavailable", json_string("no early stopping"));
    json_object_set_new(settings, "window_observations", json_integer(plan->parameters.window));
    json_object_set_new(settings, "generator", json_string(cli_text(call, "generator")));
    if (plan->parameters.profile_window > 0.0)
        json_object_set_new(settings, "profile_window_share", json_real(plan->parameters.profile_window));
    if (plan->parameters.power != NULL)
        json_object_set_new(settings, "power_policy", json_string(plan->parameters.power->name));
    table_member(table, "settings", settings);
}

/* "-45.21 ±0.31 ±4.2 (-46.0 .. -44.1)" */
static void put_statistics(struct buffer *text, const struct job_cell *of, int figure, int decimals)
{
    const struct statistics *statistics = &of->figures[figure];
    double recordings = job_cell_recordings_error(of, figure);
    char cell[CELL_MAX], second[CELL_MAX] = "";
    int length;

    if (statistics->count == 0)
        length = snprintf(cell, sizeof cell, "unavailable");
    else if (statistics->count == 1)
        length = snprintf(cell, sizeof cell, "%.*f (one run)", decimals, statistics->mean);
    else {
        if (isfinite(recordings))
            snprintf(second, sizeof second, " \302\261%.*f", decimals, recordings);
        /* Each sign takes two bytes and one column. */
        length = snprintf(cell, sizeof cell, "%.*f \302\261%.*f%s (%.*f .. %.*f)", decimals, statistics->mean,
                          decimals, statistics->standard_error, second, decimals, statistics->p10, decimals,
                          statistics->p90) -
                 1 - (second[0] != '\0');
    }
    buffer_puts(text, cell);
    for (; length < CELL_WIDTH; length++)
        buffer_puts(text, " ");
}

static void put_changes(struct buffer *text, const char *policy, const char *over,
                        const struct job_cell *cell, int first_figure)
{
    buffer_printf(text, "  %-9s %-11s", policy, over);
    for (int i = 0; i < 3; i++)
        put_statistics(text, cell, first_figure + i, 1);
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    buffer_puts(text, "\n");
}

/* Names the changes at the end whose sign is uncertain because so few runs were recorded. */
static void put_open_signs(struct buffer *text, const struct job_cell *cell)
{
    static const char *const names[] = {"energy", "time", "score"};
    const char *separator = "";

    for (int i = 0; i < 3; i++) {
        const struct statistics *statistics = &cell->figures[FIGURE_TAIL_ENERGY + i];
        double error = job_cell_recordings_error(cell, FIGURE_TAIL_ENERGY + i);

        if (!isfinite(error) || !(error > 0) || fabs(statistics->mean) > normal_95 * error)
            continue;
        buffer_printf(text,
                      separator[0] == '\0' ? "  %-10sso few recorded runs leave open whether it changes %s"
                                           : "%.0s, %s",
                      "", names[i]);
        separator = ", ";
    }
    buffer_puts(text, separator[0] != '\0' ? "\n" : "");
}

static void put_rest(struct buffer *text, const struct job_cell *cell)
{
    const struct statistics *regret = &cell->figures[FIGURE_REGRET];
    const struct statistics *paid_off = &cell->figures[FIGURE_PAID_OFF];

    buffer_printf(text, "  %-10s", "");
    if (regret->count > 0)
        buffer_printf(text, "regret %.2f optimal runs (%.2f .. %.2f); ", regret->mean, regret->p10,
                      regret->p90);
    if (paid_off->count > 0)
        buffer_printf(text, "paid off after %.1f recurrences (%.1f .. %.1f) in %zu of %zu runs; ",
                      paid_off->mean, paid_off->p10, paid_off->p90, paid_off->count, cell->seeds);
    else
        buffer_puts(text, cell->completed > 0 ? "did not pay off; " : "whether it pays off is not known; ");
    if (cell->chosen_runs > 0)
        buffer_printf(text, "at the end batch %u at %g W in %zu of %zu", cell->chosen_batch_size,
                      cell->chosen_limit_w, cell->chosen_runs, cell->seeds);
    else
        buffer_puts(text, "nothing chosen");
    buffer_puts(text, "\n");
    put_open_signs(text, cell);
    if (cell->first_ended != NULL)
        buffer_printf(text,
                      "  %-10serror: %zu of %zu runs ended early, the first after %llu recurrences: %s\n", "",
                      cell->seeds - cell->completed, cell->seeds,
                      (unsigned long long)cell->first_ended->completed, cell->first_ended->end.text);
}

static void put_heading(struct buffer *text, const struct job_cell *cell)
{
    const struct job_spec *spec = &cell->workload->spec;

    buffer_printf(text, "%s on %s: %zu seed%s x %llu recurrences; default batch %u at %g W",
                  cell->workload->job.name, cell->workload->gpu, cell->seeds, cell->seeds == 1 ? "" : "s",
                  (unsigned long long)cell->recurrences, spec->batches[spec->default_batch].size,
                  batch_highest_limit_w(&spec->batches[spec->default_batch]));
    if (isfinite(cell->optimum->cost_j))
        buffer_printf(text, ", optimum batch %u at %g W", spec->batches[cell->optimum->batch].size,
                      cell->workload->batches[cell->optimum->batch].points[cell->optimum->point].limit_w);
    buffer_printf(text, "\n  %-10s%-11s%-*s%-*s%s\n", "policy", "over", CELL_WIDTH, "energy %", CELL_WIDTH,
                  "time %", "score %");
}

static void put_cell(struct buffer *text, const struct job_cell *cell)
{
    put_changes(text, cell->policy, "last 5", cell, FIGURE_TAIL_ENERGY);
    put_changes(text, "", "whole run", cell, FIGURE_WHOLE_ENERGY);
    put_rest(text, cell);
}

static const char legend[] = "Change against the default, mean \302\261 standard error (p10 .. p90) over "
                             "seeds; the whole run includes\n"
                             "exploration. Replayed from the traces in %s.\n";

static const char legend_recordings[] =
    "The second \302\261 is the standard error from the few recorded runs "
    "of each batch size (%u bootstrap replicates).\n";

/* Passes all cells in order to the text or the table. */
static int for_each_cell(const struct campaign_plan *plan, const struct campaign *campaign,
                         const struct bootstrap *bootstrap, struct buffer *text, struct table *table,
                         struct fly_error *out_error)
{
    for (size_t w = 0; w < plan->workload_count; w++) {
        for (size_t p = 0; p < plan->policy_count; p++) {
            struct job_cell cell;
            int code = job_cell_make(plan, campaign, bootstrap, w, p, &cell, out_error);

            if (code < 0)
                return code;
            if (table != NULL)
                job_figures_add(table, &cell);
            if (p == 0)
                put_heading(text, &cell);
            put_cell(text, &cell);
        }
        buffer_puts(text, w + 1 < plan->workload_count ? "\n" : "");
    }
    return text->error < 0 ? error_no_memory(out_error) : 0;
}

/*
 * Prints the result of `flyball sim job`. People get a few lines for each workload and policy.
 * Programs get one row each, with every figure's mean, standard error, p10 and p90 over the
 * seeds, and the standard error due to the few recorded runs (`replicates` of the bootstrap; 0:
 * none were run). Figures cover the runs that completed; if some ended early, the report says how
 * many and why.
 */
static int sim_report_emit(const struct cli_call *call, const struct campaign_plan *plan,
                           const struct campaign *campaign, const struct bootstrap *bootstrap,
                           unsigned replicates, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct table *table = for_people ? NULL : job_figures_new();
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    buffer_printf(&text, legend, cli_text(call, "traces"));
    if (replicates > 0)
        buffer_printf(&text, legend_recordings, replicates);
    else if (!plan->in_order)
        buffer_puts(&text, "What so few recorded runs leave open is not in it; --bootstrap 100 adds it.\n");
    if (plan->parameters.profile_window > 0.0)
        buffer_printf(&text, "Measuring power limits takes %g %% of a batch size's first epoch.\n",
                      100.0 * plan->parameters.profile_window);
    buffer_puts(&text, "\n");
    if (plan->parameters.power != NULL)
        buffer_printf(&text, "Power limits of profiled batch sizes: as '%s' chooses (%s).\n\n",
                      plan->parameters.power->name, cli_text(call, "power-policy"));
    code = for_each_cell(plan, campaign, bootstrap, &text, table, out_error);
    if (code == 0 && for_people)
        code = cli_emit_text(call, text.data, out_error);
    else if (code == 0) {
        add_settings(table, call, plan);
        table_member(table, "bootstrap_replicates", json_integer(replicates));
        code = cli_emit_table(call, table, out_error);
    }
    table_free(table);
    buffer_deinit(&text);
    return code;
}

/* clang-format off */

/* What jobs bring; transfer_option_open reads these. */
#define SIM_OPTIONS_TRANSFER \
    {.name = "transfer-from", .type = CLI_TEXT, .placeholder = "WHAT", \
     .help = "What policies that learn from elsewhere bring: recurrences of the same job on another GPU of " \
             "the traces (its name), or under another weight of energy (eta=0.9); those of another job " \
             "(its name), or of the job itself with batch sizes that are 2^N times as large (shift=N), to " \
             "see what a past takes that misleads."}, \
    {.name = "transfer-recurrences", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, \
     .maximum = 1000000, .default_text = "30", \
     .help = "Recurrences there, with luck of their own; what they take is not counted."}

/* clang-format on */

static int open_sources(void *context, const char *gpu, struct sim_set *set, struct fly_error *out_error)
{
    const struct cli_call *const *call = context;

    return gpu != NULL ? sim_workloads_open_of(set, *call, gpu, out_error)
                       : sim_workloads_open_traces(set, *call, out_error);
}

/*
 * Opens what jobs bring from elsewhere, as --transfer-from and --transfer-recurrences say. Call
 * sim_transfer_close only after success.
 */
static int transfer_option_open(struct sim_transfer *set, const struct cli_call *call,
                                const struct sim_set *targets, struct fly_error *out_error)
{
    const char *from = cli_text(call, "transfer-from"), *expected = NULL;
    const struct sim_transfer_wish wish = {.from = from,
                                           .recurrences = (uint64_t)cli_integer(call, "transfer-recurrences"),
                                           .traces = cli_text(call, "traces"),
                                           .open = open_sources,
                                           .context = &call};
    int code = sim_transfer_open(set, &wish, targets, &expected, out_error);

    return expected != NULL ? cli_value_error(call, "transfer-from", from, expected, out_error) : code;
}

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
        code = output_path_open(cli_text(call, "plot"), &sim->plot, out_error);
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
         "score against the default (default batch size, highest power limit) for the last five recurrences "
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

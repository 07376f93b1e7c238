/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim pareto`: the energy-time frontier of a recorded job, and the best choice on it. */
#include <math.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/options/output_path.h"
#include "cli/options/small_options.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "cli/sim/sim_workloads.h"
#include "cli/views/pareto_view.h"
#include "sim/open/sim_pareto.h"

enum { MEMORY_MAX = 256 << 20, NAMES_MAX = 300 };

/*
 * The order is that of enum fly_objective_kind. The lowest limit is not among them, since it says
 * nothing about a batch size.
 */
static const char *const objective_names[] = {
    [FLY_OBJECTIVE_ENERGY] = "energy", [FLY_OBJECTIVE_TIME] = "time", [FLY_OBJECTIVE_COST] = "cost", NULL};

static const struct cli_option options[] = {
    SIM_OPTIONS_TRACES,
    SIM_OPTION_ETA,
    {.name = "objective",
     .type = CLI_CHOICE,
     .placeholder = "WHAT",
     .choices = objective_names,
     .default_text = "cost",
     .help = "What the best choice makes small."},
    {.name = "max-slowdown",
     .type = CLI_TEXT,
     .placeholder = "BOUND",
     .help = "The best choice takes at most so much more time than the default: 3% or 1.03x."},
    {.name = "all", .type = CLI_FLAG, .help = "List every choice, not the frontier alone."},
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw the choices, the frontier, the default and the best choice into this SVG file."},
    SIM_OPTIONS_JOB,
};

/* Checks that there is one job: a frontier belongs to one. */
static int check_one(const struct sim_set *workloads, const struct cli_call *call,
                     struct fly_error *out_error)
{
    struct buffer names;
    int code;

    if (workloads->count == 1)
        return 0;
    buffer_init(&names, NAMES_MAX);
    for (size_t i = 0; i < workloads->count; i++)
        buffer_printf(&names, "%s%s", i > 0 ? ", " : "", workloads->items[i].job.name);
    code = cli_usage(call, out_error,
                     "a frontier is of one workload, not of %zu; choose one with --workload: %s",
                     workloads->count, names.data);
    buffer_deinit(&names);
    return code;
}

static int read_objective(const struct cli_call *call, struct fly_objective *out_objective,
                          struct fly_error *out_error)
{
    struct fly_objective objective = {
        .kind = (enum fly_objective_kind)cli_choice(call, "objective"),
        .eta = cli_real(call, "eta"),
        .max_slowdown = INFINITY,
    };
    int code = slowdown_option_read(call, &objective.max_slowdown, out_error);

    if (code == 0)
        *out_objective = objective;
    return code;
}

/* The picture comes first: the report is printed only when everything that was asked for is there. */
static int show(const struct cli_call *call, const struct pareto_result *result, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = 0;

    if (cli_set(call, "svg")) {
        code = output_path_open(cli_text(call, "svg"), &file, out_error);
        if (code == 0)
            code = pareto_plot_commit(result, &file, out_error);
    }
    return code == 0 ? pareto_report_emit(call, result, out_error) : code;
}

static int run_on(const struct cli_call *call, const struct sim_set *workloads,
                  const struct fly_objective *objective, struct fly_error *out_error)
{
    const struct pareto_source source = sim_pareto_source(cli_text(call, "traces"));
    struct pareto_result result = {
        .workload = &workloads->items[0], .objective = *objective, .source = &source};
    struct operating_points points;
    struct arena arena;
    int code = check_one(workloads, call, out_error);

    arena_init(&arena, MEMORY_MAX);
    if (code == 0)
        code = operating_points_of(result.workload, &arena, &points, out_error);
    result.points = &points;
    if (code == 0)
        code = sim_pareto_choose(&result, out_error);
    if (code == 0)
        code = show(call, &result, out_error);
    arena_deinit(&arena);
    return code;
}

static int sim_pareto_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_set workloads; /* large; the program runs one command */
    struct fly_objective objective;
    int code = read_objective(call, &objective, out_error);

    if (code == 0)
        code = sim_workloads_open(&workloads, call, out_error);
    if (code < 0)
        return code;
    code = run_on(call, &workloads, &objective, out_error);
    sim_set_close(&workloads);
    return code;
}

const struct cli_command cmd_sim_pareto = {
    .words = "sim pareto",
    .summary = "show the energy-time frontier of a recorded job",
    .paragraphs =
        {"For every batch size and power limit of one job in the traces: the time and energy that training "
         "to the target is expected to take. Lists the choices worth having, fastest first: those of which "
         "no other needs less time and no more energy, or the reverse. Says which is best for the objective, "
         "and what it saves against the default (default batch size, highest power limit).",
         "The figures are expectations over the recorded runs, retries of failed runs included, from one "
         "measurement of power and epoch time for each choice; there is no spread to state. Batch sizes that "
         "never reach the target in the traces are named, and are no choice."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball sim pareto --traces traces --gpu v100 --workload librispeech",
                  "list the frontier, and the choice of the lowest score"},
                 {"flyball sim pareto --traces traces --gpu v100 --workload librispeech --objective energy "
                  "--max-slowdown 3% --svg pareto.svg",
                  "find the least energy within 3 % more time than today, and draw it"}},
    .outputs = {&pareto_quantities},
    .run = sim_pareto_run,
};

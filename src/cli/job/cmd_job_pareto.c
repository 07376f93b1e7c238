/* SPDX-License-Identifier: Apache-2.0 */
/* The frontier of a live job, from its own log. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/output_path.h"
#include "cli/options/store_option.h"
#include "cli/views/pareto_view.h"
#include "job/past/job_frontier.h"
#include "job/past/savings.h"
#include "policy/batch_policy.h"
#include "sim/open/pareto_result.h"
#include "sim/world/workload.h"

/*
 * A live job's frontier in the form in which the views show a recorded job's. Only what they need is filled
 * in. Memory is the arena's; the history and the frontier must outlive it. FLY_ENOMEM.
 */
struct job_pareto {
    struct workload workload;
    struct pareto_spread *spreads; /* in the order of workload.spec.batches */
};

static int job_pareto_of(const struct job_history *history, size_t machine,
                         const struct job_frontier *frontier, struct arena *arena,
                         struct job_pareto *out_pareto, struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &history->definition;
    const struct fly_job_hardware *hardware = &history->machines[machine];
    struct batch_choice *choices = arena_alloc(arena, definition->batch_count, sizeof choices[0]);
    struct pareto_spread *spreads = arena_alloc(arena, definition->batch_count, sizeof spreads[0]);
    char *gpu = arena_alloc(arena, 1, JOB_HARDWARE_TEXT_MAX);

    if (choices == NULL || spreads == NULL || gpu == NULL)
        return error_no_memory(out_error);
    out_pareto->spreads = spreads;
    out_pareto->workload = (struct workload){
        .gpu = job_view_hardware(hardware, gpu),
        .job = {.name = definition->name},
        .spec = {.name = definition->name,
                 .batches = choices,
                 .batch_count = definition->batch_count,
                 .max_epochs = definition->max_epochs,
                 .max_power_w = frontier->max_power_w,
                 .gpu_count = hardware->gpu_count},
    };
    for (size_t i = 0; i < definition->batch_count; i++) {
        const struct job_frontier_batch *batch = &frontier->batches[i];

        choices[i] = (struct batch_choice){definition->batch_sizes[i], &frontier->reference.power_limit_w, 1};
        spreads[i] = (struct pareto_spread){batch->epoch.trials, batch->epoch.energy, batch->epoch.time,
                                            batch->barred};
        if (definition->batch_sizes[i] == definition->default_batch_size)
            out_pareto->workload.spec.default_batch = i;
    }
    return 0;
}

/* ---- the frontier of a live job, from its own log ---- */

enum { MEMORY_MAX = 512 << 20 };

static const struct cli_option options[] = {
    {.name = "all", .type = CLI_FLAG, .help = "List every choice, not the frontier alone."},
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw the choices, the frontier, the default and the best choice into this SVG file."},
};

static const char basis[] =
    "the epochs that trials took, failed ones included (within a bound on the slowdown, without those that "
    "were stopped), for each that reached the target, times what an "
    "epoch takes by the profile of the batch size, brought to the level of whole trials";

/* Says what the job runs, where that is not the best of these expectations, and why. */
static void tell_runs(struct pareto_result *result, const struct job_history *history, size_t machine)
{
    const struct fly_operating_point *chosen = &result->points->points[result->chosen];
    const struct job_row *now = job_view_now(history, machine);
    bool waits =
        isfinite(result->objective.max_slowdown) && strcmp(history->policy, batch_policy_bayes.name) == 0;

    if (now == NULL || !(now->trial.limit_w > 0.0) ||
        (now->trial.batch_size == chosen->batch_size && now->trial.limit_w == chosen->power_limit_w))
        return;
    snprintf(result->runs, sizeof result->runs, "batch %u at %g W", now->trial.batch_size,
             now->trial.limit_w);
    result->runs_since = history->pin_batch_size > 0 ? "which is pinned"
                         : waits ? "until it is sure enough that the other keeps the bound"
                                 : "by what its policy knows of whole runs";
}

static int emit(const struct cli_call *call, struct pareto_result *result, bool lacks_bound,
                const struct job_history *history, size_t machine, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = 0;

    if (result->points->count == 0)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "no trial of job '%s' on %s has reached its target yet, so that nothing is known of a "
            "frontier",
            history->definition.name, result->workload->gpu);
    if (lacks_bound)
        cli_note(call, "the default was not measured, so that the bound on the slowdown is left out");
    tell_runs(result, history, machine);
    if (cli_set(call, "svg")) {
        code = output_path_open(cli_text(call, "svg"), &file, out_error);
        if (code == 0)
            code = pareto_plot_commit(result, &file, out_error);
    }
    return code == 0 ? pareto_report_emit(call, result, out_error) : code;
}

/*
 * Returns the address to show. A database's address may hold a password; a path and a service's
 * address do not.
 */
static const char *place_of(const char *address)
{
    if (address == NULL)
        return "your own store";
    return strncmp(address, "postgres", strlen("postgres")) == 0 ? "the server's store" : address;
}

static int show(const struct cli_call *call, const struct jobs *jobs, const struct job_history *history,
                struct fly_error *out_error)
{
    const struct pareto_source source = {
        .schema = "flyball.job.pareto/2",
        .subject_key = "job",
        .place_key = "store",
        .place = place_of(cli_text(call, "store")),
        .from = "the job's log in",
        .basis = basis,
        .picture_from = "the job's own trials",
        .left_out = job_frontier_left_out,
    };
    struct pareto_result result = {.source = &source};
    struct job_profiles profiles;
    struct job_frontier frontier;
    struct job_pareto pareto;
    struct job_savings savings;
    struct arena arena;
    size_t machine = 0;
    int code = job_view_machine(call, history, &machine, out_error);

    if (code < 0)
        return code;
    arena_init(&arena, MEMORY_MAX);
    code = job_profiles_read(jobs, history, &arena, &profiles, out_error);
    if (code == 0)
        code = job_frontier_read(jobs, history, &profiles, machine, &arena, &frontier, out_error);
    if (code == 0)
        code = job_pareto_of(history, machine, &frontier, &arena, &pareto, out_error);
    if (code == 0)
        code = job_savings_of(history, machine, &savings, out_error);
    if (code == 0) {
        result.objective = frontier.objective;
        result.workload = &pareto.workload;
        result.spreads = pareto.spreads;
        result.savings = &savings;
        result.points = &frontier.points;
        result.chosen = frontier.chosen;
        code = emit(call, &result, frontier.lacks_bound, history, machine, out_error);
    }
    arena_deinit(&arena);
    return code;
}

static int job_pareto_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct job_view view;
    int code = job_view_read(call, 0, &view, out_error);

    if (code < 0)
        return code;
    code = show(call, &view.jobs, &view.history, out_error);
    job_view_close(&view);
    return code;
}

const struct cli_command cmd_job_pareto = {
    .words = "job pareto",
    .summary = "show the energy-time frontier of a recurring job",
    .paragraphs =
        {"For every batch size of which a trial reached the target, and every power limit of its profile: "
         "the time and energy that training to the target takes, as far as the job's own log tells. Lists "
         "the "
         "choices worth having, fastest first, and the best for the job's objective, with what it takes "
         "less than the default. 'flyball job set JOB --pin BATCH,WATTS' stays with one of them.",
         "These are expectations, from few trials each and from profiles. Changes against the default are "
         "told where what is saved is known, with 95 % intervals from how trials differ where there are four "
         "trials of both; what was really saved, by 'flyball job show', stands below them. A trial that ran "
         "under "
         "several power limits, to measure them, is booked to none of them."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&job_hardware_option, &store_options},
    .operands = "JOB",
    .operand_maximum = 1,
    .examples = {{"flyball job pareto digits", "list the frontier"},
                 {"flyball job pareto digits --all --svg pareto.svg", "list every choice, and draw them"}},
    .outputs = {&pareto_quantities},
    .run = job_pareto_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Recurring jobs, simulated for a caller of the library. */
#include <flyball/sim.h>

#include <stdlib.h>

#include "base/error.h"
#include "sim/bootstrap.h"
#include "sim/campaign.h"
#include "sim/open/job_figures.h"
#include "sim/open/sim_call.h"
#include "sim/open/sim_columns.h"
#include "sim/open/sim_transfer.h"

/* What a finished campaign comes to, while it is turned into tables. */
struct outcome {
    struct campaign campaign;
    struct bootstrap bootstrap;
    struct buffer kept; /* tries */
};

static int find_spread(struct sim_call *call, const struct campaign_plan *plan, struct outcome *outcome,
                       struct fly_error *out_error)
{
    int replicates = call->options.bootstrap;

    call->units_done = call->units;
    return replicates > 0
               ? bootstrap_run(plan, &outcome->campaign, (size_t)replicates, &outcome->bootstrap, out_error)
               : 0;
}

static int make_rows(const struct campaign_plan *plan, const struct outcome *outcome,
                     struct fly_sim_table **out_rows, struct fly_error *out_error)
{
    struct table *table = job_figures_new();
    int code = 0;

    for (size_t i = 0; i < plan->workload_count * plan->policy_count && code == 0; i++) {
        struct job_cell cell;

        code = job_cell_make(plan, &outcome->campaign, &outcome->bootstrap, i / plan->policy_count,
                             i % plan->policy_count, &cell, out_error);
        if (code == 0)
            job_figures_add(table, &cell);
    }
    if (code == 0)
        code = sim_columns_of(table, out_rows, out_error);
    table_free(table);
    return code;
}

/* Turns the outcome into the tables that are wanted: both or none. */
static int make_tables(const struct campaign_plan *plan, const struct outcome *outcome,
                       struct fly_sim_table **out_rows, struct fly_sim_table **out_tries,
                       struct fly_error *out_error)
{
    struct fly_sim_table *rows = NULL;
    int code = make_rows(plan, outcome, &rows, out_error);

    if (code < 0)
        return code;
    if (out_tries != NULL)
        code = sim_columns_of_tries(plan, &outcome->kept, out_tries, out_error);
    if (code < 0)
        fly_sim_table_free(rows);
    else
        *out_rows = rows;
    return code;
}

static int run_plan(struct sim_call *call, const struct campaign_plan *given, struct fly_sim_table **out_rows,
                    struct fly_sim_table **out_tries, struct fly_error *out_error)
{
    struct outcome outcome = {.bootstrap = {NULL}};
    struct campaign_plan plan = *given;
    int code;

    buffer_init(&outcome.kept, sim_columns_tries_bytes());
    if (out_tries != NULL) {
        plan.tries = sim_columns_keep;
        plan.tries_context = &outcome.kept;
        plan.tries_kept = true;
    }
    code = campaign_run(&plan, &outcome.campaign, out_error);
    if (code == 0) {
        code = find_spread(call, &plan, &outcome, out_error);
        if (code == 0)
            code = make_tables(&plan, &outcome, out_rows, out_tries, out_error);
        bootstrap_free(&outcome.bootstrap);
        campaign_free(&outcome.campaign);
    }
    buffer_deinit(&outcome.kept);
    return code;
}

/* Opens what jobs bring: those of another GPU with the same jobs, or the same traces without one. */
static int open_sources(void *context, const char *gpu, struct sim_set *set, struct fly_error *out_error)
{
    struct sim_call *call = context;
    int code = gpu != NULL ? sim_call_jobs(call, gpu, set, out_error)
                           : sim_call_traces(call, call->options.gpu_model, set, out_error);

    if (code < 0)
        sim_set_close(set);
    return code;
}

static int bring(struct sim_call *call, struct sim_transfer *transfer, struct fly_error *out_error)
{
    const struct fly_sim_options *options = &call->options;
    const char *expected = NULL;
    const struct sim_transfer_wish wish = {
        .from = options->transfer_from,
        .recurrences = options->transfer_recurrences > 0 ? options->transfer_recurrences : 30,
        .traces = options->traces,
        .open = open_sources,
        .context = call};
    int code;

    if (options->transfer_from != NULL && !sim_policies_heed_past(&call->policies))
        return error_set(out_error, FLY_EUSAGE,
                         "sim: no policy learns from elsewhere; add bayes, or leave out transfer_from");
    code = sim_transfer_open(transfer, &wish, &call->set, &expected, out_error);
    if (expected != NULL)
        return error_set(out_error, FLY_EUSAGE, "sim: bad transfer_from '%.60s'; expected %s",
                         options->transfer_from, expected);
    return code;
}

/* Selects jobs, policies and seeds. */
static int prepare(struct sim_call *call, struct campaign_plan *plan, struct fly_error *out_error)
{
    int code = sim_call_jobs(call, call->options.gpu_model, &call->set, out_error);

    if (code == 0 && call->options.in_order)
        code = sim_set_check_order(&call->set, out_error);
    if (code == 0 && sim_set_allow_for_drift(&call->set, call->drift, call->options.recurrences))
        sim_call_note(call,
                      "with this drift the greatest number of epochs is raised as the need of epochs grows");
    if (code == 0)
        code = sim_call_policies(call, &plan->parameters, out_error);
    return code == 0 ? sim_call_seeds(call, 20, &plan->seeds, &plan->seed_count, out_error) : code;
}

static int run_call(struct sim_call *call, struct fly_sim_table **out_rows, struct fly_sim_table **out_tries,
                    struct fly_error *out_error)
{
    struct campaign_plan plan = {
        .recurrences = call->options.recurrences,
        .in_order = call->options.in_order,
        .drift = call->drift,
        .progress = sim_call_progress,
        .progress_context = call,
        .tells_replicates = true,
    };
    struct sim_transfer *transfer;
    int code = prepare(call, &plan, out_error);

    if (code < 0)
        return code;
    transfer = calloc(1, sizeof *transfer); /* large */
    code = transfer != NULL ? bring(call, transfer, out_error) : error_no_memory(out_error);
    if (code == 0) {
        plan.workloads = call->set.items;
        plan.workload_count = call->set.count;
        plan.policies = call->policies.items;
        plan.policy_count = call->policies.count;
        plan.transfers = transfer->items;
        plan.threads = call->threads;
        call->units = (uint64_t)plan.workload_count * plan.policy_count * plan.seed_count;
        code = run_plan(call, &plan, out_rows, out_tries, out_error);
        sim_transfer_close(transfer);
    }
    free(transfer);
    return code;
}

int fly_sim_run_jobs(const struct fly_sim_options *options, struct fly_sim_table **out_rows,
                     struct fly_sim_table **out_tries, struct fly_error *out_error)
{
    struct sim_call *call = NULL;
    int code = sim_call_open(options, &call, out_error);

    if (code == 0)
        code = run_call(call, out_rows, out_tries, out_error);
    sim_call_close(call);
    return code;
}

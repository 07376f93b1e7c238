/* SPDX-License-Identifier: Apache-2.0 */
/* The worlds of all replicates are the workloads of another campaign, with one seed each. */
#include "sim/bootstrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/math/philox.h"
#include "sim/statistics.h"

enum { MEMORY_MAX = 1 << 30, STREAM = 1, NAME_MAX_BYTES = 256 };

/* If more replicates than this ended early, the remaining ones would be a biased choice. */
static const double usable_least = 0.8;

/* Makes the workload with its recorded runs drawn anew; it shares all the rest. */
static int resample(const struct workload *workload, uint32_t replicate, struct arena *arena,
                    struct workload *out_workload, struct fly_error *out_error)
{
    size_t count = workload->spec.batch_count;
    struct workload_batch *batches = arena_alloc(arena, count, sizeof batches[0]);
    char name[NAME_MAX_BYTES];

    if (batches == NULL)
        return error_no_memory(out_error);
    snprintf(name, sizeof name, "bootstrap/%s", workload->spec.name);
    *out_workload = *workload;
    out_workload->batches = batches;
    for (size_t i = 0; i < count; i++) {
        const struct workload_batch *from = &workload->batches[i];
        struct philox draws =
            philox_open(philox_key(replicate, name), STREAM, workload->spec.batches[i].size, 0);
        double *epochs = arena_alloc(arena, from->path_count, sizeof epochs[0]);

        if (epochs == NULL)
            return error_no_memory(out_error);
        for (uint32_t path = 0; path < from->path_count; path++)
            epochs[path] = from->path_epochs[philox_below(&draws, from->path_count)];
        batches[i] = *from;
        batches[i].path_epochs = epochs;
    }
    return 0;
}

/* Sums over replicates, to compute the variance of their means and the mean of their variances. */
struct spread {
    size_t usable;
    double within; /* sum over replicates of the squared standard error of the mean over seeds */
    double *means; /* of usable replicates */
};

static void take_replicate(struct spread *spread, const struct comparison *runs, size_t seeds, int figure)
{
    double values[BOOTSTRAP_SEEDS];
    struct statistics statistics;

    for (size_t i = 0; i < seeds; i++)
        values[i] = runs[i].figures[figure];
    statistics = statistics_of(values, seeds);
    if (statistics.count < 2)
        return;
    spread->means[spread->usable++] = statistics.mean;
    spread->within += statistics.standard_error * statistics.standard_error;
}

/* Returns the spread of replicates without the part due to the seeds; `means` has room for all replicates. */
static double standard_error(const struct campaign_plan *replicas, const struct campaign *campaign,
                             size_t policy, int figure, double *means)
{
    struct spread spread = {.means = means};
    struct statistics statistics;
    double between;

    for (size_t i = 0; i < replicas->workload_count; i++)
        take_replicate(&spread, campaign_cell(replicas, campaign, i, policy), replicas->seed_count, figure);
    if (spread.usable < BOOTSTRAP_REPLICATES_MIN ||
        (double)spread.usable < usable_least * (double)replicas->workload_count)
        return NAN;
    statistics = statistics_of(means, spread.usable);
    between = statistics.standard_error * statistics.standard_error * (double)spread.usable;
    return sqrt(fmax(0.0, between - spread.within / (double)spread.usable));
}

/* Returns whether some batch size has recorded runs that differ. */
static bool runs_differ(const struct workload *workload)
{
    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        const double *epochs = workload->batches[i].path_epochs;

        for (uint32_t path = 1; path < workload->batches[i].path_count; path++) {
            if (epochs[path] != epochs[0] && !(isnan(epochs[path]) && isnan(epochs[0])))
                return true;
        }
    }
    return false;
}

/* Lets every replicate bring what its workload brings: the past is not drawn anew. */
static int share_transfer(struct campaign_plan *plan, const struct transfer *transfer, struct arena *arena)
{
    struct transfer *transfers = arena_alloc(arena, plan->workload_count, sizeof transfers[0]);

    if (transfers == NULL)
        return FLY_ENOMEM;
    for (size_t i = 0; i < plan->workload_count; i++)
        transfers[i] = *transfer;
    plan->transfers = transfers;
    return 0;
}

/* Runs one workload's replicates as one campaign, so that each workload keeps its number of recurrences. */
static int replicate(const struct campaign_plan *plan, const struct campaign *campaign, size_t workload,
                     size_t count, struct arena *arena, struct workload *worlds,
                     struct campaign_plan *out_plan, struct campaign *out_campaign,
                     struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = resample(&plan->workloads[workload], (uint32_t)i, arena, &worlds[i], out_error);
    *out_plan = *plan;
    out_plan->workloads = worlds;
    out_plan->workload_count = count;
    out_plan->seed_count = plan->seed_count < BOOTSTRAP_SEEDS ? plan->seed_count : BOOTSTRAP_SEEDS;
    out_plan->recurrences = campaign->recurrences[workload];
    out_plan->tries = NULL;
    out_plan->curves = false;
    out_plan->progress = plan->tells_replicates ? plan->progress : NULL;
    if (code == 0 && plan->transfers != NULL &&
        share_transfer(out_plan, &plan->transfers[workload], arena) < 0)
        code = error_no_memory(out_error);
    return code == 0 ? campaign_run(out_plan, out_campaign, out_error) : code;
}

/* Fills in the standard errors of one workload; `means` has room for the replicates. */
static int fill(const struct campaign_plan *plan, const struct campaign *campaign, size_t workload,
                size_t count, struct workload *worlds, double *means, double *out_errors,
                struct fly_error *out_error)
{
    struct campaign_plan replicas;
    struct campaign replicated;
    struct arena arena;
    int code;

    arena_init(&arena, MEMORY_MAX);
    code = replicate(plan, campaign, workload, count, &arena, worlds, &replicas, &replicated, out_error);
    for (size_t p = 0; p < plan->policy_count && code == 0; p++) {
        for (int figure = 0; figure < FIGURE_COUNT; figure++)
            *out_errors++ = runs_differ(&plan->workloads[workload])
                                ? standard_error(&replicas, &replicated, p, figure, means)
                                : NAN;
    }
    if (code == 0)
        campaign_free(&replicated);
    arena_deinit(&arena);
    return code;
}

int bootstrap_run(const struct campaign_plan *plan, const struct campaign *campaign, size_t replicates,
                  struct bootstrap *out_bootstrap, struct fly_error *out_error)
{
    size_t per_workload = plan->policy_count * FIGURE_COUNT;
    struct bootstrap bootstrap = {calloc(plan->workload_count * per_workload, sizeof(double))};
    struct workload *worlds = calloc(replicates, sizeof worlds[0]);
    double *means = calloc(replicates, sizeof means[0]);
    int code = 0;

    if (bootstrap.standard_errors == NULL || worlds == NULL || means == NULL)
        code = error_no_memory(out_error);
    for (size_t w = 0; w < plan->workload_count && code == 0; w++)
        code = fill(plan, campaign, w, replicates, worlds, means,
                    bootstrap.standard_errors + w * per_workload, out_error);
    free(means);
    free(worlds);
    if (code < 0)
        bootstrap_free(&bootstrap);
    else
        *out_bootstrap = bootstrap;
    return code;
}

void bootstrap_free(struct bootstrap *bootstrap)
{
    free(bootstrap->standard_errors);
    bootstrap->standard_errors = NULL;
}

const double *bootstrap_cell(const struct campaign_plan *plan, const struct bootstrap *bootstrap,
                             size_t workload, size_t policy)
{
    if (bootstrap->standard_errors == NULL)
        return NULL;
    return &bootstrap->standard_errors[(workload * plan->policy_count + policy) * FIGURE_COUNT];
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/campaign.h"

#include <math.h>
#include <stdlib.h>

#include "sim/crew.h"
#include "sim/try_writer.h"

enum { MEMORY_MAX = 1 << 30 };

/* What the units share. */
struct work {
    const struct campaign_plan *plan;
    struct campaign *campaign;
};

/* Fills in the oracle's result for a job that never reaches its target: it ended before it began. */
static void no_optimum(const struct workload *workload, struct comparison *out_result)
{
    struct optimum none;

    out_result->ended = oracle_find(workload, &none, &out_result->end);
    for (int i = 0; i < FIGURE_COUNT; i++)
        out_result->figures[i] = NAN;
}

/* Lets the oracle follow the drift too. */
static void follow_optimum(const void *context, uint64_t recurrence, size_t *out_batch, double *out_limit_w)
{
    const struct drift *drift = context;
    const struct optimum optimum = drift_optimum(drift, recurrence);

    *out_batch = optimum.batch;
    *out_limit_w = drift->workload->batches[optimum.batch].points[optimum.point].limit_w;
}

/* Returns what a job brings with this policy, or NULL. */
static const struct transfer *find_transfer(const struct campaign_plan *plan,
                                            const struct campaign_policy *policy, size_t workload)
{
    if (plan->transfers == NULL || policy->policy == NULL || !policy->policy->heeds_past ||
        plan->transfers[workload].source == NULL)
        return NULL;
    return &plan->transfers[workload];
}

static int run_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    const struct work *work = context;
    const struct campaign_plan *plan = work->plan;
    size_t w = unit->number / plan->seed_count / plan->policy_count;
    const struct campaign_policy *policy =
        &plan->policies[unit->number / plan->seed_count % plan->policy_count];
    const struct workload *workload = &plan->workloads[w];
    const struct optimum *optimum = &work->campaign->optima[w];
    bool known = !isinf(optimum->cost_j);
    struct comparison_plan comparison = {
        .workload = workload,
        .optimum = known ? optimum : NULL,
        .policy = policy->policy != NULL ? policy->policy : &batch_policy_fixed,
        .parameters = plan->parameters,
        .recurrences = work->campaign->recurrences[w],
        .in_order = plan->in_order,
        .burst = plan->burst,
        .rest_at_default = plan->rest_at_default,
        .crash_share = plan->crash_share,
        .transfer = find_transfer(plan, policy, w),
        .drift = plan->drift == DRIFT_NONE ? NULL : &work->campaign->drifts[w],
        .curve = plan->curves ? &work->campaign->curves[unit->number] : NULL,
        .cancelled = crew_given_up,
        .cancelled_context = unit,
    };
    struct comparison *result = &work->campaign->comparisons[unit->number];
    struct try_writer writer;
    int code;

    comparison.parameters.seed = plan->seeds[unit->number % plan->seed_count];
    comparison.parameters.fixed_batch = optimum->batch;
    if (policy->policy == NULL && !known) {
        no_optimum(workload, result);
        return 0;
    }
    comparison.parameters.fixed_limit_w = workload->batches[optimum->batch].points[optimum->point].limit_w;
    if (comparison.drift != NULL && policy->policy == NULL) {
        comparison.parameters.fixed_at = follow_optimum;
        comparison.parameters.fixed_context = comparison.drift;
    }
    try_writer_init(&writer, unit, workload->gpu, NULL, workload->job.dataset, policy->name,
                    comparison.parameters.seed);
    if (plan->tries != NULL && policy->writes_tries) {
        comparison.observer = plan->tries_kept ? try_writer_keep : try_writer_observe;
        comparison.observer_context = &writer;
    }
    code = comparison_run(&comparison, result, out_error);
    try_writer_deinit(&writer);
    return code;
}

/* Returns the positions of a workload's samples, in `arena` if they are its own; NULL without memory. */
static const uint64_t *find_positions(const struct campaign_plan *plan, uint64_t recurrences, size_t most,
                                      struct arena *arena, size_t *out_count)
{
    uint64_t *positions;

    *out_count = plan->horizon_count;
    if (plan->horizon_count > 0)
        return plan->horizons;
    positions = arena_alloc(arena, most, sizeof positions[0]);
    *out_count = positions != NULL ? curve_positions(recurrences, most, positions) : 0;
    return positions;
}

/* Prepares a curve for every unit; those of a workload share their positions. */
static int prepare_curves(const struct campaign_plan *plan, struct campaign *campaign, uint64_t units,
                          struct fly_error *out_error)
{
    uint64_t per_workload = units / plan->workload_count, unit = 0;
    size_t most = CAMPAIGN_SAMPLES_MAX / units;

    campaign->curves = arena_alloc(&campaign->arena, units, sizeof campaign->curves[0]);
    if (campaign->curves == NULL)
        return error_no_memory(out_error);
    most = most < CURVE_SAMPLES_MAX ? most : CURVE_SAMPLES_MAX;
    for (size_t w = 0; w < plan->workload_count; w++) {
        size_t count;
        const uint64_t *positions =
            find_positions(plan, campaign->recurrences[w], most, &campaign->arena, &count);

        for (; unit < (w + 1) * per_workload && count > 0; unit++) {
            enum curve_extent extent = plan->horizon_count > 0        ? CURVE_TOTALS
                                       : unit % plan->seed_count == 0 ? CURVE_KNOBS
                                                                      : CURVE_REGRET;

            if (!curve_init(&campaign->curves[unit], &campaign->arena, positions, count, extent))
                count = 0;
        }
        if (count == 0)
            return error_no_memory(out_error);
    }
    return 0;
}

static int prepare(const struct campaign_plan *plan, struct campaign *campaign, uint64_t units,
                   struct fly_error *out_error)
{
    int code = 0;

    campaign->comparisons = calloc(units, sizeof campaign->comparisons[0]);
    campaign->optima = calloc(plan->workload_count, sizeof campaign->optima[0]);
    campaign->recurrences = calloc(plan->workload_count, sizeof campaign->recurrences[0]);
    campaign->drifts = calloc(plan->workload_count, sizeof campaign->drifts[0]);
    arena_init(&campaign->arena, MEMORY_MAX);
    if (campaign->comparisons == NULL || campaign->optima == NULL || campaign->recurrences == NULL ||
        campaign->drifts == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < plan->workload_count && code == 0; i++) {
        const struct workload *workload = &plan->workloads[i];

        if (oracle_find(workload, &campaign->optima[i], NULL) < 0)
            campaign->optima[i] = (struct optimum){.cost_j = INFINITY};
        campaign->optima[i].cost_j *= environment_crash_factor(plan->crash_share);
        campaign->recurrences[i] = plan->recurrences > 0 ? plan->recurrences : workload_recurrences(workload);
        code = drift_init(&campaign->drifts[i], plan->drift, workload, campaign->recurrences[i],
                          &campaign->arena, out_error);
    }
    return code;
}

int campaign_run(const struct campaign_plan *plan, struct campaign *out_campaign, struct fly_error *out_error)
{
    uint64_t units = (uint64_t)plan->workload_count * plan->policy_count * plan->seed_count;
    struct campaign campaign = {0};
    struct work work = {plan, &campaign};
    const struct crew_plan crew = {.units = units,
                                   .threads = plan->threads,
                                   .run = run_unit,
                                   .context = &work,
                                   .thread_begun = plan->thread_begun,
                                   .sink = plan->tries,
                                   .sink_context = plan->tries_context,
                                   .progress = plan->progress,
                                   .progress_context = plan->progress_context};
    int code;

    if (units > CAMPAIGN_UNITS_MAX || units == 0)
        return error_set(out_error, FLY_ELIMIT,
                         "%llu simulations; expected 1 to %d, so ask for fewer seeds, policies or workloads",
                         (unsigned long long)units, CAMPAIGN_UNITS_MAX);
    code = prepare(plan, &campaign, units, out_error);
    if (code == 0 && plan->curves)
        code = prepare_curves(plan, &campaign, units, out_error);
    if (code == 0)
        code = crew_run(&crew, out_error);
    if (code < 0)
        campaign_free(&campaign);
    else
        *out_campaign = campaign;
    return code;
}

void campaign_free(struct campaign *campaign)
{
    free(campaign->comparisons);
    free(campaign->optima);
    free(campaign->recurrences);
    free(campaign->drifts);
    arena_deinit(&campaign->arena);
    *campaign = (struct campaign){0};
}

const struct comparison *campaign_cell(const struct campaign_plan *plan, const struct campaign *campaign,
                                       size_t workload, size_t policy)
{
    return &campaign->comparisons[(workload * plan->policy_count + policy) * plan->seed_count];
}

const struct curve *campaign_curves(const struct campaign_plan *plan, const struct campaign *campaign,
                                    size_t workload, size_t policy)
{
    return campaign->curves == NULL
               ? NULL
               : &campaign->curves[(workload * plan->policy_count + policy) * plan->seed_count];
}

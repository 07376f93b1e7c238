/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers take units (workload, policy, seed) from a common counter in order.
 * Everything a unit touches is its own or constant, so the number of threads
 * changes nothing but the time; tries come out in the order of the units.
 */
#include "sim/campaign.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/csv_quote.h"

enum { PROGRESS_NS = 100000000, TRY_LINE_MAX = 256, PREFIX_MAX = 1 << 16, CURVES_MEMORY_MAX = 1 << 30 };

const char campaign_tries_header[] =
    "gpu,dataset,policy,seed,recurrence,try,batch_size,power_limit_w,reached,energy_j,time_s,cost_j\n";

struct crew {
    const struct campaign_plan *plan;
    struct campaign *campaign;
    struct ordered_output output;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    uint64_t next, done, total; /* units */
    unsigned working;           /* threads */
    int code;                   /* the first error */
    struct fly_error error;
};

/* A unit that is being worked on. */
struct unit {
    struct crew *crew;
    size_t workload, policy, seed;
    struct buffer prefix; /* of its lines in the tries file */
    struct ordered_part part;
};

static void unit_begin(struct unit *unit, struct crew *crew, uint64_t number)
{
    const struct campaign_plan *plan = crew->plan;

    *unit = (struct unit){.crew = crew,
                          .workload = number / plan->seed_count / plan->policy_count,
                          .policy = number / plan->seed_count % plan->policy_count,
                          .seed = number % plan->seed_count};
    buffer_init(&unit->prefix, PREFIX_MAX);
    csv_quote(&unit->prefix, plan->workloads[unit->workload].gpu);
    buffer_puts(&unit->prefix, ",");
    csv_quote(&unit->prefix, plan->workloads[unit->workload].job.dataset);
    buffer_printf(&unit->prefix, ",%s,%u,", plan->policies[unit->policy].name, plan->seeds[unit->seed]);
    ordered_part_begin(&unit->part, &crew->output, number);
}

static void unit_end(struct unit *unit)
{
    ordered_part_end(&unit->part);
    buffer_deinit(&unit->prefix);
}

static void write_try(void *context, const struct try_record *record)
{
    struct unit *unit = context;
    char line[TRY_LINE_MAX];
    int length = snprintf(line, sizeof line, "%llu,%llu,%u,%.17g,%d,%.17g,%.17g,%.17g\n",
                          (unsigned long long)record->recurrence, (unsigned long long)record->number,
                          record->batch_size, record->power_limit_w, record->reached, record->energy_j,
                          record->time_s, record->cost_j);

    ordered_part_write(&unit->part, unit->prefix.data, unit->prefix.length);
    ordered_part_write(&unit->part, line, (size_t)length);
}

static bool crew_failed(void *context)
{
    struct crew *crew = context;
    bool failed;

    pthread_mutex_lock(&crew->lock);
    failed = crew->code < 0;
    pthread_mutex_unlock(&crew->lock);
    return failed || ordered_output_failed(&crew->output);
}

/* The oracle of a job that never reaches its target: ended before it began. */
static void no_optimum(const struct workload *workload, struct comparison *out_result)
{
    struct optimum none;

    out_result->ended = oracle_find(workload, &none, &out_result->end);
    for (int i = 0; i < FIGURE_COUNT; i++)
        out_result->figures[i] = NAN;
}

static int run_unit(struct unit *unit, uint64_t number, struct fly_error *out_error)
{
    struct crew *crew = unit->crew;
    const struct campaign_plan *plan = crew->plan;
    const struct campaign_policy *policy = &plan->policies[unit->policy];
    const struct workload *workload = &plan->workloads[unit->workload];
    const struct optimum *optimum = &crew->campaign->optima[unit->workload];
    bool known = !isinf(optimum->cost_j);
    struct comparison_plan comparison = {
        .workload = workload,
        .optimum = known ? optimum : NULL,
        .policy = policy->policy != NULL ? policy->policy : &batch_policy_fixed,
        .parameters = plan->parameters,
        .recurrences = crew->campaign->recurrences[unit->workload],
        .observer = plan->tries != NULL && policy->writes_tries ? write_try : NULL,
        .observer_context = unit,
        .curve = plan->curves ? &crew->campaign->curves[number] : NULL,
        .cancelled = crew_failed,
        .cancelled_context = crew,
    };
    struct comparison *result = &crew->campaign->comparisons[number];

    comparison.parameters.seed = plan->seeds[unit->seed];
    comparison.parameters.fixed_batch = optimum->batch;
    if (policy->policy == NULL && !known) {
        no_optimum(workload, result);
        return 0;
    }
    comparison.parameters.fixed_limit_w = workload->batches[optimum->batch].points[optimum->point].limit_w;
    return comparison_run(&comparison, result, out_error);
}

/* Takes the next unit; false when there is none or the crew has failed. */
static bool take_unit(struct crew *crew, uint64_t *out_number)
{
    bool taken;

    pthread_mutex_lock(&crew->lock);
    taken = crew->code == 0 && crew->next < crew->total;
    if (taken)
        *out_number = crew->next++;
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

static void finish_unit(struct crew *crew, int code, const struct fly_error *error)
{
    pthread_mutex_lock(&crew->lock);
    crew->done++;
    if (code < 0 && crew->code == 0) {
        crew->code = code;
        crew->error = *error;
    }
    pthread_mutex_unlock(&crew->lock);
}

static void *work(void *context)
{
    struct crew *crew = context;
    uint64_t number;

    while (take_unit(crew, &number)) {
        struct unit unit;
        struct fly_error error = {0};
        int code;

        unit_begin(&unit, crew, number);
        code = run_unit(&unit, number, &error);
        finish_unit(crew, code, &error);
        unit_end(&unit);
    }
    pthread_mutex_lock(&crew->lock);
    crew->working--;
    pthread_cond_signal(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Starts up to plan->threads workers with all signals blocked; returns how many run. */
static unsigned start_workers(struct crew *crew, pthread_t *threads)
{
    sigset_t all, before;
    unsigned count = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&crew->lock);
    while (count < crew->plan->threads && count < crew->total &&
           pthread_create(&threads[count], NULL, work, crew) == 0)
        count++;
    crew->working = count;
    pthread_mutex_unlock(&crew->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count;
}

/* Reports progress until the last worker is done. */
static void wait_workers(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->working > 0) {
        struct timespec until;
        uint64_t done = crew->done;

        pthread_mutex_unlock(&crew->lock);
        if (crew->plan->progress != NULL)
            crew->plan->progress(crew->plan->progress_context, done, crew->total);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&crew->lock);
        if (crew->working > 0)
            pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
    }
    pthread_mutex_unlock(&crew->lock);
}

static int discard(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)context;
    (void)bytes;
    (void)count;
    (void)out_error;
    return 0;
}

static int run_crew(const struct campaign_plan *plan, struct campaign *campaign, uint64_t units,
                    struct fly_error *out_error)
{
    struct crew crew = {.plan = plan, .campaign = campaign, .total = units};
    pthread_t threads[CAMPAIGN_THREADS_MAX];
    unsigned count;

    ordered_output_init(&crew.output, plan->tries != NULL ? plan->tries : discard, plan->tries_context);
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.changed, NULL);
    count = start_workers(&crew, threads);
    if (count == 0) {
        crew.working = 1;
        work(&crew);
    }
    wait_workers(&crew);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&crew.changed);
    pthread_mutex_destroy(&crew.lock);
    ordered_output_deinit(&crew.output);
    if (crew.output.code < 0) {
        crew.code = crew.output.code;
        crew.error = crew.output.error;
    }
    if (crew.code < 0 && out_error != NULL)
        *out_error = crew.error;
    return crew.code;
}

/* A curve for every unit; those of a workload share their positions. */
static int prepare_curves(const struct campaign_plan *plan, struct campaign *campaign, uint64_t units,
                          struct fly_error *out_error)
{
    uint64_t per_workload = units / plan->workload_count, unit = 0;
    size_t most = CAMPAIGN_SAMPLES_MAX / units;

    arena_init(&campaign->arena, CURVES_MEMORY_MAX);
    campaign->curves = arena_alloc(&campaign->arena, units, sizeof campaign->curves[0]);
    if (campaign->curves == NULL)
        return error_no_memory(out_error);
    most = most < CURVE_SAMPLES_MAX ? most : CURVE_SAMPLES_MAX;
    for (size_t w = 0; w < plan->workload_count; w++) {
        uint64_t *positions = arena_alloc(&campaign->arena, most, sizeof positions[0]);
        size_t count = positions != NULL ? curve_positions(campaign->recurrences[w], most, positions) : 0;

        for (; unit < (w + 1) * per_workload && count > 0; unit++) {
            if (!curve_init(&campaign->curves[unit], &campaign->arena, positions, count,
                            unit % plan->seed_count == 0))
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
    campaign->comparisons = calloc(units, sizeof campaign->comparisons[0]);
    campaign->optima = calloc(plan->workload_count, sizeof campaign->optima[0]);
    campaign->recurrences = calloc(plan->workload_count, sizeof campaign->recurrences[0]);
    if (campaign->comparisons == NULL || campaign->optima == NULL || campaign->recurrences == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < plan->workload_count; i++) {
        const struct workload *workload = &plan->workloads[i];

        if (oracle_find(workload, &campaign->optima[i], NULL) < 0)
            campaign->optima[i] = (struct optimum){.cost_j = INFINITY};
        campaign->recurrences[i] = plan->recurrences > 0 ? plan->recurrences : workload_recurrences(workload);
    }
    return 0;
}

int campaign_run(const struct campaign_plan *plan, struct campaign *out_campaign, struct fly_error *out_error)
{
    uint64_t units = (uint64_t)plan->workload_count * plan->policy_count * plan->seed_count;
    struct campaign campaign = {0};
    int code;

    if (units > CAMPAIGN_UNITS_MAX || units == 0 || plan->threads < 1 || plan->threads > CAMPAIGN_THREADS_MAX)
        return error_set(
            out_error, FLY_ELIMIT,
            "%llu simulations on %u threads; expected 1 to %d simulations and 1 to %d threads, so ask "
            "for fewer seeds, policies or workloads",
            (unsigned long long)units, plan->threads, CAMPAIGN_UNITS_MAX, CAMPAIGN_THREADS_MAX);
    code = prepare(plan, &campaign, units, out_error);
    if (code == 0 && plan->curves)
        code = prepare_curves(plan, &campaign, units, out_error);
    if (code == 0)
        code = run_crew(plan, &campaign, units, out_error);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Policies side by side, for a caller of the library. */
#include <flyball/sim.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/math/order.h"
#include "base/words.h"
#include "sim/campaign.h"
#include "sim/open/compare_jobs.h"
#include "sim/open/compare_rows.h"
#include "sim/open/sim_call.h"
#include "sim/open/sim_columns.h"
#include "sim/open/sim_objective.h"
#include "sim/scenario.h"

enum { HORIZONS_MAX = 16, SEEDS = 200, SYNTHETIC_JOBS = 10 };

static const uint32_t usual_horizons[] = {10, 25, 50, 100};
static const enum sim_policy usual_policies[] = {SIM_POLICY_ZEUS, SIM_POLICY_BAYES, SIM_POLICY_ZEUS_ONE_ROUND,
                                                 SIM_POLICY_HILL_CLIMB, SIM_POLICY_BANDIT};

/* A comparison while it runs. */
struct comparing {
    struct sim_call *call;
    const struct fly_sim_comparison *asked;
    struct compare_jobs *jobs; /* large */
    struct compare_synthetic synthetic;
    uint64_t horizons[HORIZONS_MAX];
    size_t horizon_count;
    enum scenario_kind scenarios[SCENARIO_COUNT];
    size_t scenario_count;
    struct campaign_plan plan;
    size_t rival, standard;
    struct table *table;
};

static int read_horizons(struct comparing *comparing, struct fly_error *out_error)
{
    size_t given = comparing->asked->horizon_count;
    size_t count = given > 0 ? given : sizeof usual_horizons / sizeof usual_horizons[0];
    uint32_t sorted[HORIZONS_MAX];

    if (count > HORIZONS_MAX)
        return error_set(out_error, FLY_EUSAGE, "sim: at most %d horizons", HORIZONS_MAX);
    memcpy(sorted, given > 0 ? comparing->asked->horizons : usual_horizons, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], order_u32);
    for (size_t i = 0; i < count; i++) {
        if (sorted[i] == 0 || (i > 0 && sorted[i] == sorted[i - 1]))
            return error_set(out_error, FLY_EUSAGE, "sim: horizon %u is none, or stands there twice",
                             sorted[i]);
        comparing->horizons[i] = sorted[i];
    }
    comparing->horizon_count = count;
    return 0;
}

/* Finds words among those known, each once, as indices; no words are all of them up to `all`. */
static int read_words(const char *what, const char *const *words, size_t count, const char *const *known,
                      size_t known_count, int *out_indices, struct fly_error *out_error)
{
    for (size_t i = 0; i < count; i++) {
        int nearest = word_nearest(words[i], known, known_count);

        out_indices[i] = i < known_count ? word_index(words[i], known, known_count) : -1;
        for (size_t k = 0; k < i && out_indices[i] >= 0; k++) {
            if (out_indices[k] == out_indices[i])
                return error_set(out_error, FLY_EUSAGE, "sim: %s '%.60s' is named twice", what, words[i]);
        }
        if (out_indices[i] < 0)
            return error_set(out_error, FLY_EUSAGE, "sim: unknown %s '%.60s'; %s '%s'", what, words[i],
                             nearest >= 0 ? "did you mean" : "one is", known[nearest >= 0 ? nearest : 0]);
    }
    return 0;
}

static int read_scenarios(struct comparing *comparing, struct fly_error *out_error)
{
    const struct fly_sim_comparison *asked = comparing->asked;
    int indices[SCENARIO_COUNT + 1] = {SCENARIO_STEADY};
    int code;

    if (asked->scenario_count == 1 && strcmp(asked->scenarios[0], scenario_names[SCENARIO_COUNT]) == 0) {
        for (int kind = 0; kind < SCENARIO_COUNT; kind++)
            comparing->scenarios[comparing->scenario_count++] = (enum scenario_kind)kind;
        return 0;
    }
    code = read_words("scenario", asked->scenarios, asked->scenario_count, scenario_names, SCENARIO_COUNT,
                      indices, out_error);

    comparing->scenario_count = asked->scenario_count > 0 ? asked->scenario_count : 1;
    for (size_t i = 0; i < comparing->scenario_count && code == 0; i++)
        comparing->scenarios[i] = (enum scenario_kind)indices[i];
    return code;
}

static int read_synthetic(struct comparing *comparing, struct fly_error *out_error)
{
    const struct fly_sim_comparison *asked = comparing->asked;
    struct compare_synthetic *synthetic = &comparing->synthetic;
    int indices[SYNTHETIC_COUNT + 1], code;

    for (int i = 0; i < SYNTHETIC_COUNT; i++)
        indices[i] = i;
    code = read_words("kind of synthetic jobs", asked->synthetic, asked->synthetic_count, synthetic_names,
                      SYNTHETIC_COUNT, indices, out_error);
    if (code == 0 && asked->synthetic_jobs > COMPARE_SYNTHETIC_MAX)
        code = error_set(out_error, FLY_EUSAGE, "sim: at most %d synthetic jobs of each kind",
                         COMPARE_SYNTHETIC_MAX);
    if (code < 0)
        return code;
    *synthetic = (struct compare_synthetic){
        .kind_count = asked->synthetic_count > 0 ? asked->synthetic_count : SYNTHETIC_COUNT,
        .number = asked->synthetic_jobs > 0    ? (uint32_t)asked->synthetic_jobs
                  : asked->synthetic_jobs == 0 ? SYNTHETIC_JOBS
                                               : 0,
        .eta = comparing->call->objective.eta};
    for (size_t i = 0; i < synthetic->kind_count; i++)
        synthetic->kinds[i] = (enum synthetic_kind)indices[i];
    return 0;
}

static int open_traces(struct comparing *comparing, struct fly_error *out_error)
{
    const struct fly_sim_comparison *asked = comparing->asked;
    struct compare_gpus gpus = {.count = asked->gpu_count};
    const char *const *names = asked->gpu_count > 0 ? asked->gpu_models : gpus.names;
    struct compare_jobs *jobs = comparing->jobs;
    struct sim_call *call = comparing->call;
    int code = 0;

    if (call->options.traces == NULL && asked->gpu_count == 0)
        return 0;
    if (asked->gpu_count > COMPARE_GPUS_MAX)
        return error_set(out_error, FLY_EUSAGE, "sim: at most %d GPUs", COMPARE_GPUS_MAX);
    if (asked->gpu_count == 0)
        code = compare_gpus_list(call->options.traces, &jobs->arena, &gpus, out_error);
    for (size_t i = 0; i < gpus.count && code == 0; i++) {
        code = sim_call_jobs(call, names[i], &jobs->sets[jobs->set_count], out_error);
        jobs->set_count++; /* it is closed even where it could not be opened whole */
    }
    return code;
}

static int open_jobs(struct comparing *comparing, struct fly_error *out_error)
{
    struct compare_jobs *jobs = comparing->jobs;
    int code = read_synthetic(comparing, out_error);

    if (code == 0)
        code = open_traces(comparing, out_error);
    if (code == 0)
        code = compare_jobs_collect(jobs, &comparing->synthetic, comparing->asked->each, out_error);
    if (code == 0)
        sim_objective_set(&comparing->call->objective, jobs->items, jobs->count);
    return code;
}

/* Returns the place of a policy by its name; the count if there is none. */
static size_t find_policy(const struct sim_policies *policies, const char *name)
{
    size_t i = 0;

    while (i < policies->count && strcmp(policies->items[i].name, name) != 0)
        i++;
    return i;
}

static int open_policies(struct comparing *comparing, struct fly_error *out_error)
{
    struct sim_call *call = comparing->call;
    struct campaign_plan *plan = &comparing->plan;
    int code = 0;

    for (size_t i = 0; i < sizeof usual_policies / sizeof usual_policies[0] && code == 0; i++) {
        if (call->options.policy_count == 0)
            code = sim_policies_add(&call->policies, usual_policies[i], out_error);
    }
    if (code == 0)
        code = sim_call_policies(call, &plan->parameters, out_error);
    if (code < 0)
        return code;
    plan->parameters.overlapping = false;
    if (!(plan->parameters.profile_window > 0.0))
        plan->parameters.profile_window = 1.0;
    comparing->standard = find_policy(&call->policies, "default");
    if (comparing->asked->against != NULL)
        comparing->rival = find_policy(&call->policies, comparing->asked->against);
    if (comparing->rival == call->policies.count)
        return error_set(out_error, FLY_EUSAGE,
                         "sim: policy '%.60s', to compare with, is not among the policies",
                         comparing->asked->against);
    return sim_call_seeds(call, SEEDS, &plan->seeds, &plan->seed_count, out_error);
}

/* Runs one scenario and adds its rows. */
static int compare_in(struct comparing *comparing, enum scenario_kind kind, struct fly_error *out_error)
{
    struct campaign_plan plan = comparing->plan;
    struct campaign campaign = {0};
    struct scenario scenario;
    const struct compare_run run = {.scenario = scenario_names[kind],
                                    .plan = &plan,
                                    .campaign = &campaign,
                                    .sets = comparing->jobs->rows,
                                    .set_count = comparing->jobs->row_count,
                                    .horizons = comparing->horizons,
                                    .horizon_count = comparing->horizon_count,
                                    .rival = comparing->rival,
                                    .standard = comparing->standard};
    int code = scenario_begin(&scenario, kind, &plan, out_error);

    if (code < 0)
        return code;
    code = campaign_run(&plan, &campaign, out_error);
    if (code == 0)
        code = compare_rows_add(comparing->table, &run, false, out_error);
    campaign_free(&campaign);
    scenario_end(&scenario);
    return code;
}

static int compare(struct comparing *comparing, struct fly_sim_table **out_rows, struct fly_error *out_error)
{
    struct sim_call *call = comparing->call;
    struct campaign_plan *plan = &comparing->plan;
    uint64_t units = (uint64_t)comparing->jobs->count * call->policies.count * plan->seed_count;
    int code = 0;

    plan->workloads = comparing->jobs->items;
    plan->workload_count = comparing->jobs->count;
    plan->policies = call->policies.items;
    plan->policy_count = call->policies.count;
    plan->recurrences = comparing->horizons[comparing->horizon_count - 1];
    plan->rest_at_default = true;
    plan->threads = call->threads;
    plan->curves = true;
    plan->horizons = comparing->horizons;
    plan->horizon_count = comparing->horizon_count;
    plan->progress = sim_call_progress;
    plan->progress_context = call;
    call->units = units * comparing->scenario_count;
    comparing->table = compare_rows_new(false);
    for (size_t i = 0; i < comparing->scenario_count && code == 0; i++) {
        code = compare_in(comparing, comparing->scenarios[i], out_error);
        call->units_done += units;
    }
    if (code == 0)
        code = sim_columns_of(comparing->table, out_rows, out_error);
    table_free(comparing->table);
    return code;
}

static int run_comparison(struct comparing *comparing, struct fly_sim_table **out_rows,
                          struct fly_error *out_error)
{
    int code = read_horizons(comparing, out_error);

    if (code == 0)
        code = read_scenarios(comparing, out_error);
    if (code < 0)
        return code;
    comparing->jobs = calloc(1, sizeof *comparing->jobs);
    if (comparing->jobs == NULL)
        return error_no_memory(out_error);
    compare_jobs_init(comparing->jobs);
    code = open_jobs(comparing, out_error);
    if (code == 0)
        code = open_policies(comparing, out_error);
    if (code == 0)
        code = compare(comparing, out_rows, out_error);
    compare_jobs_close(comparing->jobs);
    free(comparing->jobs);
    return code;
}

int fly_sim_compare(const struct fly_sim_options *options, const struct fly_sim_comparison *comparison,
                    struct fly_sim_table **out_rows, struct fly_error *out_error)
{
    struct comparing comparing = {.asked = comparison};
    int code;

    if (comparison->size < sizeof *comparison)
        return error_set(out_error, FLY_EUSAGE, "sim: comparison.size is %zu; set it to sizeof comparison",
                         comparison->size);
    code = sim_call_open(options, &comparing.call, out_error);
    if (code == 0)
        code = run_comparison(&comparing, out_rows, out_error);
    sim_call_close(comparing.call);
    return code;
}

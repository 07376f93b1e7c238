/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/group_report.h"

#include <math.h>
#include <string.h>

/* Sums over groups and seeds of one workload and policy, beside the default's. */
struct sums {
    uint64_t groups; /* times seeds */
    uint64_t ended;  /* before their last submission, with this policy or the default */
    uint64_t submissions, tries, launches, beside;
    double energy_j, time_s, cost_j;
    double default_energy_j, default_time_s, default_cost_j;
};

static const struct table_column columns[] = {
    {"workload", "workload", TABLE_TEXT, 0},
    {"gpu", "GPU", TABLE_TEXT, 0},
    {"policy", "policy", TABLE_TEXT, 0},
    {"groups", "groups", TABLE_INTEGER, 0},
    {"ended_early", "ended early", TABLE_INTEGER, 0},
    {"submissions", "submissions", TABLE_INTEGER, 0},
    {"tries", "tries", TABLE_INTEGER, 0},
    {"beside_others_percent", "overlapping (%)", TABLE_REAL, 1},
    {"energy_j", "energy (J)", TABLE_REAL, 0},
    {"time_s", "time (s)", TABLE_REAL, 0},
    {"cost_j", "cost (J)", TABLE_REAL, 0},
    {"energy_change_percent", "energy (%)", TABLE_REAL, 1},
    {"time_change_percent", "time (%)", TABLE_REAL, 1},
    {"cost_change_percent", "cost (%)", TABLE_REAL, 1},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static size_t default_policy(const struct group_plan *plan)
{
    size_t policy = 0;

    while (strcmp(plan->policies[policy].name, "default") != 0)
        policy++;
    return policy;
}

static const struct group_result *result_at(const struct group_plan *plan, const struct group_result *results,
                                            size_t group, size_t policy, size_t seed)
{
    return &results[(group * plan->policy_count + policy) * plan->seed_count + seed];
}

static void add_result(struct sums *sums, const struct group_result *result,
                       const struct group_result *standard)
{
    sums->groups++;
    if (result->ended < 0 || standard->ended < 0) {
        sums->ended++;
        return;
    }
    sums->submissions += result->submissions;
    sums->tries += result->tries;
    sums->launches += result->launches;
    sums->beside += result->beside;
    sums->energy_j += result->energy_j;
    sums->time_s += result->time_s;
    sums->cost_j += result->cost_j;
    sums->default_energy_j += standard->energy_j;
    sums->default_time_s += standard->time_s;
    sums->default_cost_j += standard->cost_j;
}

/* Sums over the groups of one workload; all of them with SIZE_MAX. */
static struct sums sum_up(const struct group_plan *plan, const struct group_result *results, size_t workload,
                          size_t policy)
{
    size_t standard = default_policy(plan);
    struct sums sums = {0};

    for (size_t group = 0; group < plan->file->count; group++) {
        if (workload != SIZE_MAX && plan->group_workloads[group] != workload)
            continue;
        for (size_t seed = 0; seed < plan->seed_count; seed++)
            add_result(&sums, result_at(plan, results, group, policy, seed),
                       result_at(plan, results, group, standard, seed));
    }
    return sums;
}

static void add_change(struct table *table, double ours, double theirs)
{
    if (theirs > 0.0)
        table_add_real(table, (ours / theirs - 1.0) * 100.0);
    else
        table_add_unavailable(table, NULL, "no group came to its end with both policies");
}

static void add_row(struct table *table, const char *workload, const char *gpu, const char *policy,
                    const struct sums *sums)
{
    table_add_text(table, workload);
    table_add_text(table, gpu);
    table_add_text(table, policy);
    table_add_integer(table, (int64_t)sums->groups);
    table_add_integer(table, (int64_t)sums->ended);
    table_add_integer(table, (int64_t)sums->submissions);
    table_add_integer(table, (int64_t)sums->tries);
    if (sums->launches > 0)
        table_add_real(table, 100.0 * (double)sums->beside / (double)sums->launches);
    else
        table_add_unavailable(table, NULL, "no group came to its end with both policies");
    table_add_real(table, sums->energy_j);
    table_add_real(table, sums->time_s);
    table_add_real(table, sums->cost_j);
    add_change(table, sums->energy_j, sums->default_energy_j);
    add_change(table, sums->time_s, sums->default_time_s);
    add_change(table, sums->cost_j, sums->default_cost_j);
}

static void add_rows(struct table *table, const struct group_plan *plan, size_t workload, const char *name,
                     const struct group_result *results)
{
    for (size_t policy = 0; policy < plan->policy_count; policy++) {
        struct sums sums = sum_up(plan, results, workload, policy);

        add_row(table, name, plan->workloads[0].gpu, plan->policies[policy].name, &sums);
    }
}

int group_report_emit(const struct cli_call *call, const struct group_plan *plan, size_t workload_count,
                      const struct group_result *results, struct fly_error *out_error)
{
    struct table *table = table_new("flyball.sim.group/1", columns, COLUMN_COUNT);
    int code;

    for (size_t workload = 0; workload < workload_count; workload++)
        add_rows(table, plan, workload, plan->workloads[workload].job.name, results);
    add_rows(table, plan, SIZE_MAX, "all", results);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

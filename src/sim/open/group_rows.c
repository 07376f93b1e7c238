/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/group_rows.h"

#include <math.h>
#include <string.h>

/* Sums over groups and seeds of one workload and policy, with those of the default. */
struct sums {
    uint64_t groups; /* times seeds */
    uint64_t ended;  /* ended before their last submission, with this policy or the default */
    uint64_t submissions, tries, launches, beside;
    double energy_j, time_s, cost_j;
    double default_energy_j, default_time_s, default_cost_j;
};

static const struct meaning columns[] = {
    {"workload", "workload", MEANING_TEXT, 0, NULL, MEANING_FACT, "Workload that is simulated."},
    {"gpu", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "GPU that the traces are of."},
    {"policy", "policy", MEANING_TEXT, 0, NULL, MEANING_FACT, "Policy that chooses what to run."},
    {"groups", "groups", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Groups that were simulated, each with every seed."},
    {"ended_early", "ended early", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Those that ended before their last submission, with this policy or the default."},
    {"submissions", "submissions", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Submissions of the other groups."},
    {"tries", "tries", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Tries of those submissions."},
    {"beside_others_percent", "overlapping (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Share of these tries that began while another of the group ran."},
    {"energy_j", "energy (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy of these tries."},
    {"time_s", "time (s)", MEANING_REAL, 0, "s", MEANING_COUNTER, "Time of these tries."},
    {"cost_j", "score", MEANING_REAL, 0, "J", MEANING_COUNTER, "Score of these tries."},
    {"energy_change_percent", "energy (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Change of the energy against the default."},
    {"time_change_percent", "time (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Change of the time against the default."},
    {"cost_change_percent", "score (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Change of the score against the default."},
};
const struct quantities group_rows_quantities = {"a workload and a policy", QUANTITIES(columns)};
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

/* Sums over the groups of one workload, or over all groups with SIZE_MAX. */
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

struct table *group_rows_of(const struct group_plan *plan, size_t workload_count,
                            const struct group_result *results)
{
    struct table *table = table_new("flyball.sim.group/1", columns, COLUMN_COUNT);

    for (size_t workload = 0; workload < workload_count; workload++)
        add_rows(table, plan, workload, plan->workloads[workload].job.name, results);
    add_rows(table, plan, SIZE_MAX, "all", results);
    return table;
}

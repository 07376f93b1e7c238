/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/compare_rows.h"

#include <math.h>
#include <stdio.h>

#include "sim/standing.h"

static const char schema[] = "flyball.sim.compare/1";

enum { RATIO_TEXT_MAX = 64 };

#define REAL(key, title, decimals, unit, help)                        \
    {                                                                 \
        key, title, MEANING_REAL, decimals, unit, MEANING_GAUGE, help \
    }
#define COUNT_OF(key, title, help)                                \
    {                                                             \
        key, title, MEANING_WHOLE, 0, NULL, MEANING_COUNTER, help \
    }
#define NAME_OF(key, title, help)                             \
    {                                                         \
        key, title, MEANING_TEXT, 0, NULL, MEANING_FACT, help \
    }

static const struct meaning columns[] = {
    NAME_OF("scenario", "scenario", "What happens to the jobs over their recurrences; \"steady\": nothing."),
    NAME_OF("jobs", "jobs", "Set of jobs: of the traces, synthetic, of one kind, or one job."),
    COUNT_OF("job_count", "job count", "Jobs in the set."),
    COUNT_OF("recurrences", "after", "Recurrences after which the figures are taken."),
    NAME_OF("policy", "policy", "Policy that chooses what to run."),
    NAME_OF("against", "against", "Policy that it is compared with, with the same luck."),
    COUNT_OF("runs", "runs", "Simulated runs: jobs times seeds."),
    COUNT_OF("ended_early_runs", "ended early",
             "Runs whose search ended before; from there on they pay what the default does."),
    REAL("regret_mean_optimal_runs", "regret", 2, NULL,
         "Mean over jobs of their mean regret, in runs with the lowest expected score."),
    REAL("regret_p90_optimal_runs", "p90", 2, NULL, "Ninetieth percentile of the regret over all runs."),
    REAL("regret_p99_optimal_runs", "p99", 2, NULL, "Ninety-ninth percentile of the regret over all runs."),
    REAL("regret_worst_optimal_runs", "worst", 2, NULL, "Regret of the worst run."),
    REAL("regret_ratio", "ratio", 3, NULL, "Mean regret, relative to that of the policy compared with."),
    REAL("regret_ratio_low", "ratio low", 3, NULL,
         "Lower end of the 95 % interval of that ratio, by the bootstrap over workloads."),
    REAL("regret_ratio_high", "ratio high", 3, NULL, "Upper end of that interval."),
    COUNT_OF("jobs_won", "jobs won", "Jobs with less mean regret than with the policy compared with."),
    REAL("runs_won_percent", "runs won (%)", 1, "%",
         "Share of paired runs with less regret than with the policy compared with; equal ones count half."),
    REAL("worst_job_excess_optimal_runs", "worst job's excess", 2, NULL,
         "Most that the mean regret of a job exceeds that with the policy compared with, less two standard "
         "errors of the paired difference."),
    NAME_OF("worst_job", "worst job", "That job."),
    NAME_OF("worst_job_gpu", "its GPU", "Its GPU."),
    REAL("energy_change_percent", "energy (%)", 1, "%",
         "Change of the energy of all recurrences so far against the default, geometric mean over jobs."),
    REAL("time_change_percent", "time (%)", 1, "%", "Change of their time."),
    REAL("cost_change_percent", "score (%)", 1, "%", "Change of their score."),
    REAL("dearest_job_cost_change_percent", "dearest job (%)", 1, "%",
         "Change of the score of the job that gains least or loses most."),
    NAME_OF("dearest_job", "dearest job", "That job."),
    NAME_OF("dearest_job_gpu", "its GPU", "Its GPU."),
    REAL("near_default_jobs_percent", "near default (%)", 1, "%",
         "Share of jobs whose score is at most 5 % above the default's."),
    REAL("dear_runs_percent", "dear (%)", 1, "%",
         "Share of runs in which some ten recurrences in a row had more than three with over 1.2 times the "
         "default's score in the same recurrence with the same luck."),
    REAL("beyond_bound_runs_percent", "beyond (%)", 1, "%",
         "Share of runs whose choices in the last 20 recurrences take over 2 % more than the jobs' bound on "
         "the "
         "slowdown allows, in the mean and by the expectation of the trace."),
};
const struct quantities compare_rows_quantities = {"a set of jobs, a number of recurrences and a policy",
                                                   QUANTITIES(columns)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

/* What people see of them. */
static const struct meaning shown[] = {
    TABLE_SHOWN("scenario", MEANING_TEXT, 0),   TABLE_SHOWN("jobs", MEANING_TEXT, 0),
    TABLE_SHOWN("after", MEANING_WHOLE, 0),     TABLE_SHOWN("policy", MEANING_TEXT, 0),
    TABLE_SHOWN("regret", MEANING_REAL, 2),     TABLE_SHOWN("ratio", MEANING_REAL, 2),
    TABLE_SHOWN("95 %", MEANING_TEXT, 0),       TABLE_SHOWN("p90", MEANING_REAL, 2),
    TABLE_SHOWN("p99", MEANING_REAL, 2),        TABLE_SHOWN("worst", MEANING_REAL, 2),
    TABLE_SHOWN("jobs won", MEANING_TEXT, 0),   TABLE_SHOWN("runs won (%)", MEANING_REAL, 1),
    TABLE_SHOWN("energy (%)", MEANING_REAL, 1), TABLE_SHOWN("time (%)", MEANING_REAL, 1),
    TABLE_SHOWN("score (%)", MEANING_REAL, 1),  TABLE_SHOWN("dear (%)", MEANING_REAL, 1),
    TABLE_SHOWN("beyond (%)", MEANING_REAL, 1), TABLE_SHOWN("ended early", MEANING_WHOLE, 0),
};
enum { SHOWN_COUNT = sizeof shown / sizeof shown[0] };

/* A row: the figures of one policy over a set of jobs at a horizon. */
struct compare_row {
    const struct compare_run *run;
    const struct compare_set *set;
    size_t horizon, policy;
    struct standing standing;
};

static const char no_regret[] = "no run came so far, or a job has no optimum";
static const char no_ratio[] = "the policy compared with has no regret, or no run came so far";
static const char one_workload[] = "one workload alone has no spread over workloads";
static const char no_total[] = "no run of some job came so far with this policy and with the default";
static const char no_pairs[] = "no two paired runs, or no regret";
static const char no_bound[] = "the jobs have no bound on the slowdown";
static const char own_rival[] = "the policy that the others are compared with";

static double change_percent(double ratio)
{
    return (ratio - 1.0) * 100.0;
}

static bool is_rival(const struct compare_row *row)
{
    return row->policy == row->run->rival;
}

/* Adds what compares a policy with its rival; the rival has nothing to compare. */
static void add_compared(struct table *table, const struct compare_row *row, double value, const char *reason)
{
    table_add_real_or(table, is_rival(row) ? NAN : value, is_rival(row) ? "-" : NULL,
                      is_rival(row) ? own_rival : reason);
}

static void add_job(struct table *table, const struct compare_row *row, double value, size_t job,
                    const char *reason)
{
    const struct workload *workload = &row->run->plan->workloads[job];

    if (isfinite(value)) {
        table_add_text(table, workload->job.name);
        table_add_text(table, workload->gpu);
        return;
    }
    table_add_unavailable(table, NULL, reason);
    table_add_unavailable(table, NULL, reason);
}

static void add_regrets(struct table *table, const struct compare_row *row)
{
    const struct standing *standing = &row->standing;

    table_add_real_or(table, standing->regret, NULL, no_regret);
    table_add_real_or(table, standing->regret_p90, NULL, no_regret);
    table_add_real_or(table, standing->regret_p99, NULL, no_regret);
    table_add_real_or(table, standing->regret_worst, NULL, no_regret);
    add_compared(table, row, standing->ratio, no_ratio);
    add_compared(table, row, standing->ratio_low, one_workload);
    add_compared(table, row, standing->ratio_high, one_workload);
}

static void add_pairs(struct table *table, const struct compare_row *row)
{
    const struct standing *standing = &row->standing;
    double excess = is_rival(row) ? NAN : standing->worst_excess;

    if (is_rival(row))
        table_add_unavailable(table, "-", own_rival);
    else
        table_add_integer(table, (int64_t)standing->jobs_won);
    add_compared(table, row, 100.0 * standing->runs_won, no_pairs);
    add_compared(table, row, standing->worst_excess, no_pairs);
    add_job(table, row, excess, standing->worst_excess_job, is_rival(row) ? own_rival : no_pairs);
}

static void add_changes(struct table *table, const struct compare_row *row)
{
    const struct standing *standing = &row->standing;

    table_add_real_or(table, change_percent(standing->energy), NULL, no_total);
    table_add_real_or(table, change_percent(standing->time), NULL, no_total);
    table_add_real_or(table, change_percent(standing->cost), NULL, no_total);
}

static void add_row(struct table *table, const struct compare_row *row)
{
    const struct campaign_plan *plan = row->run->plan;
    const struct standing *standing = &row->standing;

    table_add_text(table, row->run->scenario);
    table_add_text(table, row->set->name);
    table_add_integer(table, (int64_t)row->set->count);
    table_add_integer(table, (int64_t)plan->horizons[row->horizon]);
    table_add_text(table, plan->policies[row->policy].name);
    table_add_text(table, plan->policies[row->run->rival].name);
    table_add_integer(table, (int64_t)standing->runs);
    table_add_integer(table, (int64_t)standing->ended);
    add_regrets(table, row);
    add_pairs(table, row);
    add_changes(table, row);
    table_add_real_or(table, change_percent(standing->worst_cost), NULL, no_total);
    add_job(table, row, standing->worst_cost, standing->worst_cost_job, no_total);
    table_add_real_or(table, 100.0 * standing->near_default, NULL, no_total);
    table_add_real_or(table, 100.0 * standing->runs_dear, NULL, no_total);
    table_add_real_or(table, 100.0 * standing->runs_beyond, NULL, no_bound);
}

/* "0.31 .. 0.44" and "23 of 24" */
static void add_interval(struct table *table, const struct compare_row *row)
{
    const struct standing *standing = &row->standing;
    char text[RATIO_TEXT_MAX];

    if (is_rival(row) || !isfinite(standing->ratio_low)) {
        table_add_unavailable(table, "-", is_rival(row) ? own_rival : one_workload);
        return;
    }
    snprintf(text, sizeof text, "%.2f .. %.2f", standing->ratio_low, standing->ratio_high);
    table_add_text(table, text);
}

static void add_won(struct table *table, const struct compare_row *row)
{
    char text[RATIO_TEXT_MAX];

    if (is_rival(row)) {
        table_add_unavailable(table, "-", own_rival);
        return;
    }
    snprintf(text, sizeof text, "%zu of %zu", row->standing.jobs_won, row->set->count);
    table_add_text(table, text);
}

static void show_row(struct table *table, const struct compare_row *row)
{
    const struct campaign_plan *plan = row->run->plan;
    const struct standing *standing = &row->standing;

    table_add_text(table, row->run->scenario);
    table_add_text(table, row->set->name);
    table_add_integer(table, (int64_t)plan->horizons[row->horizon]);
    table_add_text(table, plan->policies[row->policy].name);
    table_add_real_or(table, standing->regret, NULL, no_regret);
    add_compared(table, row, standing->ratio, no_ratio);
    add_interval(table, row);
    table_add_real_or(table, standing->regret_p90, NULL, no_regret);
    table_add_real_or(table, standing->regret_p99, NULL, no_regret);
    table_add_real_or(table, standing->regret_worst, NULL, no_regret);
    add_won(table, row);
    add_compared(table, row, 100.0 * standing->runs_won, no_pairs);
    add_changes(table, row);
    table_add_real_or(table, 100.0 * standing->runs_dear, NULL, no_total);
    table_add_real_or(table, 100.0 * standing->runs_beyond, isfinite(standing->runs_beyond) ? NULL : "-",
                      no_bound);
    table_add_integer(table, (int64_t)standing->ended);
}

static bool has_rows(const struct compare_run *run, uint64_t horizon)
{
    size_t i = 0;

    while (i < run->horizon_count && run->horizons[i] != horizon)
        i++;
    return i < run->horizon_count;
}

static int add_set(struct table *table, const struct compare_run *run, const struct compare_set *set,
                   bool people, struct fly_error *out_error)
{
    struct compare_row row = {.run = run, .set = set};

    for (row.horizon = 0; row.horizon < run->plan->horizon_count; row.horizon++) {
        if (!has_rows(run, run->plan->horizons[row.horizon]))
            continue;
        for (row.policy = 0; row.policy < run->plan->policy_count; row.policy++) {
            const struct standing_question question = {.first = set->first,
                                                       .count = set->count,
                                                       .policy = row.policy,
                                                       .rival = run->rival,
                                                       .standard = run->standard,
                                                       .horizon = row.horizon};
            int code = standing_find(run->plan, run->campaign, &question, &row.standing, out_error);

            if (code < 0)
                return code;
            (people ? show_row : add_row)(table, &row);
        }
    }
    return 0;
}

struct table *compare_rows_new(bool people)
{
    return people ? table_new(schema, shown, SHOWN_COUNT) : table_new(schema, columns, COLUMN_COUNT);
}

int compare_rows_add(struct table *table, const struct compare_run *run, bool people,
                     struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < run->set_count && code == 0; i++)
        code = add_set(table, run, &run->sets[i], people, out_error);
    return code;
}

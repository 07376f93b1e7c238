/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/job_figures.h"

#include <math.h>
#include <stdlib.h>

#define FIGURE(key, unit, help)                              \
    {                                                        \
        key, key, MEANING_REAL, 2, unit, MEANING_GAUGE, help \
    }
#define FIGURE_KEYS(key, unit, what)                                               \
    FIGURE(key "_mean", unit, "Mean over the runs of " what "."),                  \
        FIGURE(key "_standard_error", unit, "Standard error of that mean."),       \
        FIGURE(key "_recordings_standard_error", unit,                             \
               "Standard error of that mean by the recordings that it rests on."), \
        FIGURE(key "_p10", unit, "Tenth percentile over the runs."),               \
        FIGURE(key "_p90", unit, "Ninetieth percentile over the runs.")

static const struct meaning columns[] = {
    {"workload", "workload", MEANING_TEXT, 0, NULL, MEANING_FACT, "Workload that is simulated."},
    {"gpu", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "GPU that the traces are of."},
    {"policy", "policy", MEANING_TEXT, 0, NULL, MEANING_FACT, "Policy that chooses what to run."},
    {"seeds", "seeds", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Simulated runs, each with a seed of its own."},
    {"completed_runs", "completed", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Those that went to their end."},
    {"recurrences", "recurrences", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Recurrences of a run."},
    {"default_batch_size", "default batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Batch size by default."},
    {"default_power_limit_w", "default limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
     "Power limit by default, the highest."},
    {"optimum_batch_size", "optimum batch", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "Batch size of the lowest expected score."},
    {"optimum_power_limit_w", "optimum limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
     "Power limit of the lowest expected score."},
    {"optimum_cost_j", "optimum score", MEANING_REAL, 0, "J", MEANING_GAUGE, "That score."},
    FIGURE_KEYS("last_five_energy_change_percent", "%",
                "the change of the last five recurrences' energy against the default"),
    FIGURE_KEYS("last_five_time_change_percent", "%", "the change of their time"),
    FIGURE_KEYS("last_five_cost_change_percent", "%", "the change of their score"),
    FIGURE_KEYS("whole_run_energy_change_percent", "%", "the change of the whole run's energy"),
    FIGURE_KEYS("whole_run_time_change_percent", "%", "the change of the whole run's time"),
    FIGURE_KEYS("whole_run_cost_change_percent", "%", "the change of the whole run's score"),
    FIGURE_KEYS("regret_optimal_runs", NULL, "the regret, in runs with the lowest expected score"),
    FIGURE_KEYS("paid_off_after_recurrences", NULL, "the recurrences after which searching had paid off"),
    FIGURE_KEYS("tries", NULL, "the tries"),
    {"paid_off_runs", "paid off", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Runs in which searching paid off."},
    {"chosen_batch_size", "chosen batch", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "Batch size that most runs chose at last."},
    {"chosen_power_limit_w", "chosen limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
     "Power limit that they chose with it."},
    {"chosen_runs", "runs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Runs that chose these two."},
    {"error", "error", MEANING_TEXT, 0, NULL, MEANING_FACT, "Why a run ended early."},
};
const struct quantities job_figures_quantities = {"a workload and a policy", QUANTITIES(columns)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };
_Static_assert(COLUMN_COUNT == 16 + 5 * FIGURE_COUNT, "five columns for every figure");

/* Counts how many runs ended with the knobs of run `at`. */
static size_t count_choice(const struct comparison *runs, size_t count, size_t at)
{
    size_t same = 0;

    for (size_t i = 0; i < count; i++)
        same += runs[i].completed > 0 && runs[i].last.batch == runs[at].last.batch &&
                runs[i].last.power_limit_w == runs[at].last.power_limit_w;
    return same;
}

static void find_choice(struct job_cell *cell, const struct comparison *runs)
{
    for (size_t i = 0; i < cell->seeds; i++) {
        size_t same = runs[i].completed > 0 ? count_choice(runs, cell->seeds, i) : 0;

        if (same > cell->chosen_runs) {
            cell->chosen_runs = same;
            cell->chosen_batch_size = cell->workload->spec.batches[runs[i].last.batch].size;
            cell->chosen_limit_w = runs[i].last.power_limit_w;
        }
    }
}

int job_cell_make(const struct campaign_plan *plan, const struct campaign *campaign,
                  const struct bootstrap *bootstrap, size_t workload, size_t policy,
                  struct job_cell *out_cell, struct fly_error *out_error)
{
    const struct comparison *runs = campaign_cell(plan, campaign, workload, policy);
    double *values = calloc(plan->seed_count, sizeof values[0]);
    struct job_cell cell = {
        .workload = &plan->workloads[workload],
        .optimum = &campaign->optima[workload],
        .policy = plan->policies[policy].name,
        .recurrences = campaign->recurrences[workload],
        .recordings = bootstrap_cell(plan, bootstrap, workload, policy),
        .seeds = plan->seed_count,
    };

    if (values == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < cell.seeds; i++) {
        cell.completed += runs[i].ended == 0;
        if (runs[i].ended < 0 && cell.first_ended == NULL)
            cell.first_ended = &runs[i];
    }
    for (int figure = 0; figure < FIGURE_COUNT; figure++) {
        for (size_t i = 0; i < cell.seeds; i++)
            values[i] = runs[i].figures[figure];
        cell.figures[figure] = statistics_of(values, cell.seeds);
    }
    free(values);
    find_choice(&cell, runs);
    *out_cell = cell;
    return 0;
}

static const char no_optimum[] = "no batch size reaches the target";

static const char *unknown_reason(const struct job_cell *cell, int figure)
{
    if (cell->completed == 0)
        return "every run ended before its last recurrence";
    if (figure == FIGURE_PAID_OFF)
        return "no run's total score came to stay below the default's";
    if (figure == FIGURE_REGRET)
        return no_optimum;
    return "not a finite number";
}

static const char no_recordings[] = "the recorded runs were not drawn anew (--bootstrap), or are all alike";

double job_cell_recordings_error(const struct job_cell *cell, int figure)
{
    return cell->recordings != NULL ? cell->recordings[figure] : NAN;
}

static void add_figures(struct table *table, const struct job_cell *cell)
{
    for (int figure = 0; figure < FIGURE_COUNT; figure++) {
        const struct statistics *statistics = &cell->figures[figure];
        const char *reason = unknown_reason(cell, figure);

        table_add_real_or(table, statistics->mean, NULL, reason);
        table_add_real_or(table, statistics->standard_error, NULL,
                          statistics->count == 1 ? "one run alone has no spread" : reason);
        table_add_real_or(table, job_cell_recordings_error(cell, figure), NULL, no_recordings);
        table_add_real_or(table, statistics->p10, NULL, reason);
        table_add_real_or(table, statistics->p90, NULL, reason);
    }
}

static void add_optimum(struct table *table, const struct job_cell *cell)
{
    const struct optimum *optimum = cell->optimum;

    if (isinf(optimum->cost_j)) {
        for (int i = 0; i < 3; i++)
            table_add_unavailable(table, NULL, no_optimum);
        return;
    }
    table_add_integer(table, cell->workload->spec.batches[optimum->batch].size);
    table_add_real(table, cell->workload->batches[optimum->batch].points[optimum->point].limit_w);
    table_add_real(table, optimum->cost_j);
}

static void add_choice(struct table *table, const struct job_cell *cell)
{
    if (cell->chosen_runs > 0) {
        table_add_integer(table, cell->chosen_batch_size);
        table_add_real(table, cell->chosen_limit_w);
    } else {
        table_add_unavailable(table, NULL, "no recurrence reached its target");
        table_add_unavailable(table, NULL, "no recurrence reached its target");
    }
    table_add_integer(table, (int64_t)cell->chosen_runs);
}

struct table *job_figures_new(void)
{
    return table_new("flyball.sim.job/2", columns, COLUMN_COUNT);
}

void job_figures_add(struct table *table, const struct job_cell *cell)
{
    const struct job_spec *spec = &cell->workload->spec;

    table_add_text(table, cell->workload->job.name);
    table_add_text(table, cell->workload->gpu);
    table_add_text(table, cell->policy);
    table_add_integer(table, (int64_t)cell->seeds);
    table_add_integer(table, (int64_t)cell->completed);
    table_add_integer(table, (int64_t)cell->recurrences);
    table_add_integer(table, spec->batches[spec->default_batch].size);
    table_add_real(table, batch_highest_limit_w(&spec->batches[spec->default_batch]));
    add_optimum(table, cell);
    add_figures(table, cell);
    table_add_integer(table, (int64_t)cell->figures[FIGURE_PAID_OFF].count);
    add_choice(table, cell);
    if (cell->first_ended != NULL)
        table_add_text(table, cell->first_ended->end.text);
    else
        table_add_unavailable(table, NULL, "every run went to its end");
}

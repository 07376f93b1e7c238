/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_report.h"
#include "cli/sim/sim_objective.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "sim/statistics.h"

static const double normal_95 = 1.96;

enum { TEXT_MAX = 64 << 20, CELL_WIDTH = 40, CELL_MAX = 96 };

/* One workload and policy, over its seeds. */
struct cell {
    const struct workload *workload;
    const struct optimum *optimum;
    const char *policy;
    uint64_t recurrences;
    size_t seeds;
    size_t completed;                     /* completed runs */
    const struct comparison *first_ended; /* a run that ended early, or NULL */
    struct statistics figures[FIGURE_COUNT];
    const double *recordings; /* the figures' standard errors due to few recorded runs; NULL: not computed */
    uint32_t chosen_batch_size; /* most common at the end of a run */
    double chosen_limit_w;
    size_t chosen_runs; /* how many runs ended with it; 0: no run completed anything */
};

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
     "Batch size of least expected cost."},
    {"optimum_power_limit_w", "optimum limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
     "Power limit of least expected cost."},
    {"optimum_cost_j", "optimum cost (J)", MEANING_REAL, 0, "J", MEANING_GAUGE, "That cost."},
    FIGURE_KEYS("last_five_energy_change_percent", "%",
                "the change of the last five recurrences' energy against the default"),
    FIGURE_KEYS("last_five_time_change_percent", "%", "the change of their time"),
    FIGURE_KEYS("last_five_cost_change_percent", "%", "the change of their cost"),
    FIGURE_KEYS("whole_run_energy_change_percent", "%", "the change of the whole run's energy"),
    FIGURE_KEYS("whole_run_time_change_percent", "%", "the change of the whole run's time"),
    FIGURE_KEYS("whole_run_cost_change_percent", "%", "the change of the whole run's cost"),
    FIGURE_KEYS("regret_optimal_runs", NULL, "the regret, in runs of least expected cost"),
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
const struct quantities sim_report_quantities = {"a workload and a policy", QUANTITIES(columns)};
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

static void find_choice(struct cell *cell, const struct comparison *runs)
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

static int cell_make(const struct campaign_plan *plan, const struct campaign *campaign,
                     const struct bootstrap *bootstrap, size_t workload, size_t policy, struct cell *out_cell,
                     struct fly_error *out_error)
{
    const struct comparison *runs = campaign_cell(plan, campaign, workload, policy);
    double *values = calloc(plan->seed_count, sizeof values[0]);
    struct cell cell = {
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

static const char *unknown_reason(const struct cell *cell, int figure)
{
    if (cell->completed == 0)
        return "every run ended before its last recurrence";
    if (figure == FIGURE_PAID_OFF)
        return "no run's total cost came to stay below the default's";
    if (figure == FIGURE_REGRET)
        return no_optimum;
    return "not a finite number";
}

static const char no_recordings[] = "the recorded runs are all alike, or were not drawn anew";

/* Returns the standard error of a figure due to few recorded runs; NAN if it is not known. */
static double recordings_error(const struct cell *cell, int figure)
{
    return cell->recordings != NULL ? cell->recordings[figure] : NAN;
}

static void add_figures(struct table *table, const struct cell *cell)
{
    for (int figure = 0; figure < FIGURE_COUNT; figure++) {
        const struct statistics *statistics = &cell->figures[figure];
        const char *reason = unknown_reason(cell, figure);

        table_add_real_or(table, statistics->mean, NULL, reason);
        table_add_real_or(table, statistics->standard_error, NULL,
                          statistics->count == 1 ? "one run alone has no spread" : reason);
        table_add_real_or(table, recordings_error(cell, figure), NULL, no_recordings);
        table_add_real_or(table, statistics->p10, NULL, reason);
        table_add_real_or(table, statistics->p90, NULL, reason);
    }
}

static void add_optimum(struct table *table, const struct cell *cell)
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

static void add_choice(struct table *table, const struct cell *cell)
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

static void add_row(struct table *table, const struct cell *cell)
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

/* Adds all settings that are needed to repeat the figures. */
static void add_settings(struct table *table, const struct cli_call *call, const struct campaign_plan *plan)
{
    json_t *settings = json_object();
    bool stops = isfinite(plan->parameters.beta);

    json_object_set_new(settings, "traces", json_string(cli_text(call, "traces")));
    json_object_set_new(settings, "seeds", json_string(cli_text(call, "seeds")));
    json_object_set_new(settings, "drift", json_string(cli_text(call, "drift")));
    json_object_set_new(settings, "eta", json_real(plan->workloads[0].spec.eta));
    if (cli_set(call, "objective"))
        json_object_set_new(settings, "objective", json_string(cli_text(call, "objective")));
    if (isfinite(sim_objective_bound(&plan->workloads[0].spec)))
        json_object_set_new(settings, "max_slowdown",
                            json_real(sim_objective_bound(&plan->workloads[0].spec)));
    json_object_set_new(settings, "beta", stops ? json_real(plan->parameters.beta) : json_null());
    if (!stops)
        json_object_set_new(settings, "beta_unavailable", json_string("no early stopping"));
    json_object_set_new(settings, "window_observations", json_integer(plan->parameters.window));
    json_object_set_new(settings, "generator", json_string(cli_text(call, "generator")));
    if (plan->parameters.profile_window > 0.0)
        json_object_set_new(settings, "profile_window_share", json_real(plan->parameters.profile_window));
    if (plan->parameters.power != NULL)
        json_object_set_new(settings, "power_policy", json_string(plan->parameters.power->name));
    table_member(table, "settings", settings);
}

/* "-45.21 ±0.31 ±4.2 (-46.0 .. -44.1)" */
static void put_statistics(struct buffer *text, const struct cell *of, int figure, int decimals)
{
    const struct statistics *statistics = &of->figures[figure];
    double recordings = recordings_error(of, figure);
    char cell[CELL_MAX], second[CELL_MAX] = "";
    int length;

    if (statistics->count == 0)
        length = snprintf(cell, sizeof cell, "unavailable");
    else if (statistics->count == 1)
        length = snprintf(cell, sizeof cell, "%.*f (one run)", decimals, statistics->mean);
    else {
        if (isfinite(recordings))
            snprintf(second, sizeof second, " \302\261%.*f", decimals, recordings);
        /* Each sign takes two bytes and one column. */
        length = snprintf(cell, sizeof cell, "%.*f \302\261%.*f%s (%.*f .. %.*f)", decimals, statistics->mean,
                          decimals, statistics->standard_error, second, decimals, statistics->p10, decimals,
                          statistics->p90) -
                 1 - (second[0] != '\0');
    }
    buffer_puts(text, cell);
    for (; length < CELL_WIDTH; length++)
        buffer_puts(text, " ");
}

static void put_changes(struct buffer *text, const char *policy, const char *over, const struct cell *cell,
                        int first_figure)
{
    buffer_printf(text, "  %-9s %-11s", policy, over);
    for (int i = 0; i < 3; i++)
        put_statistics(text, cell, first_figure + i, 1);
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    buffer_puts(text, "\n");
}

/* Names the changes at the end whose sign is uncertain because so few runs were recorded. */
static void put_open_signs(struct buffer *text, const struct cell *cell)
{
    static const char *const names[] = {"energy", "time", "cost"};
    const char *separator = "";

    for (int i = 0; i < 3; i++) {
        const struct statistics *statistics = &cell->figures[FIGURE_TAIL_ENERGY + i];
        double error = recordings_error(cell, FIGURE_TAIL_ENERGY + i);

        if (!isfinite(error) || !(error > 0) || fabs(statistics->mean) > normal_95 * error)
            continue;
        buffer_printf(text,
                      separator[0] == '\0' ? "  %-10sso few recorded runs leave open whether it changes %s"
                                           : "%.0s, %s",
                      "", names[i]);
        separator = ", ";
    }
    buffer_puts(text, separator[0] != '\0' ? "\n" : "");
}

static void put_rest(struct buffer *text, const struct cell *cell)
{
    const struct statistics *regret = &cell->figures[FIGURE_REGRET];
    const struct statistics *paid_off = &cell->figures[FIGURE_PAID_OFF];

    buffer_printf(text, "  %-10s", "");
    if (regret->count > 0)
        buffer_printf(text, "regret %.2f optimal runs (%.2f .. %.2f); ", regret->mean, regret->p10,
                      regret->p90);
    if (paid_off->count > 0)
        buffer_printf(text, "paid off after %.1f recurrences (%.1f .. %.1f) in %zu of %zu runs; ",
                      paid_off->mean, paid_off->p10, paid_off->p90, paid_off->count, cell->seeds);
    else
        buffer_puts(text, cell->completed > 0 ? "did not pay off; " : "whether it pays off is not known; ");
    if (cell->chosen_runs > 0)
        buffer_printf(text, "at the end batch %u at %g W in %zu of %zu", cell->chosen_batch_size,
                      cell->chosen_limit_w, cell->chosen_runs, cell->seeds);
    else
        buffer_puts(text, "nothing chosen");
    buffer_puts(text, "\n");
    put_open_signs(text, cell);
    if (cell->first_ended != NULL)
        buffer_printf(text,
                      "  %-10serror: %zu of %zu runs ended early, the first after %llu recurrences: %s\n", "",
                      cell->seeds - cell->completed, cell->seeds,
                      (unsigned long long)cell->first_ended->completed, cell->first_ended->end.text);
}

static void put_heading(struct buffer *text, const struct cell *cell)
{
    const struct job_spec *spec = &cell->workload->spec;

    buffer_printf(text, "%s on %s: %zu seed%s x %llu recurrences; default batch %u at %g W",
                  cell->workload->job.name, cell->workload->gpu, cell->seeds, cell->seeds == 1 ? "" : "s",
                  (unsigned long long)cell->recurrences, spec->batches[spec->default_batch].size,
                  batch_highest_limit_w(&spec->batches[spec->default_batch]));
    if (isfinite(cell->optimum->cost_j))
        buffer_printf(text, ", optimum batch %u at %g W", spec->batches[cell->optimum->batch].size,
                      cell->workload->batches[cell->optimum->batch].points[cell->optimum->point].limit_w);
    buffer_printf(text, "\n  %-10s%-11s%-*s%-*s%s\n", "policy", "over", CELL_WIDTH, "energy %", CELL_WIDTH,
                  "time %", "cost %");
}

static void put_cell(struct buffer *text, const struct cell *cell)
{
    put_changes(text, cell->policy, "last 5", cell, FIGURE_TAIL_ENERGY);
    put_changes(text, "", "whole run", cell, FIGURE_WHOLE_ENERGY);
    put_rest(text, cell);
}

static const char legend[] = "Change against the default, mean \302\261 standard error (p10 .. p90) over "
                             "seeds; the whole run includes\n"
                             "exploration. Replayed from the traces in %s.\n";
static const char legend_recordings[] =
    "The second \302\261 is the standard error from the few recorded runs "
    "of each batch size (%u bootstrap replicates).\n";

/* Passes all cells in order to the text or the table. */
static int for_each_cell(const struct campaign_plan *plan, const struct campaign *campaign,
                         const struct bootstrap *bootstrap, struct buffer *text, struct table *table,
                         struct fly_error *out_error)
{
    for (size_t w = 0; w < plan->workload_count; w++) {
        for (size_t p = 0; p < plan->policy_count; p++) {
            struct cell cell;
            int code = cell_make(plan, campaign, bootstrap, w, p, &cell, out_error);

            if (code < 0)
                return code;
            if (table != NULL)
                add_row(table, &cell);
            if (p == 0)
                put_heading(text, &cell);
            put_cell(text, &cell);
        }
        buffer_puts(text, w + 1 < plan->workload_count ? "\n" : "");
    }
    return text->error < 0 ? error_no_memory(out_error) : 0;
}

int sim_report_emit(const struct cli_call *call, const struct campaign_plan *plan,
                    const struct campaign *campaign, const struct bootstrap *bootstrap, unsigned replicates,
                    struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct table *table = for_people ? NULL : table_new("flyball.sim.job/2", columns, COLUMN_COUNT);
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    buffer_printf(&text, legend, cli_text(call, "traces"));
    if (replicates > 0)
        buffer_printf(&text, legend_recordings, replicates);
    if (plan->parameters.profile_window > 0.0)
        buffer_printf(&text, "Measuring power limits takes %g %% of a batch size's first epoch.\n",
                      100.0 * plan->parameters.profile_window);
    buffer_puts(&text, "\n");
    if (plan->parameters.power != NULL)
        buffer_printf(&text, "Power limits of profiled batch sizes: as '%s' chooses (%s).\n\n",
                      plan->parameters.power->name, cli_text(call, "power-policy"));
    code = for_each_cell(plan, campaign, bootstrap, &text, table, out_error);
    if (code == 0 && for_people)
        code = cli_emit_text(call, text.data, out_error);
    else if (code == 0) {
        add_settings(table, call, plan);
        table_member(table, "bootstrap_replicates", json_integer(replicates));
        code = cli_emit_table(call, table, out_error);
    }
    table_free(table);
    buffer_deinit(&text);
    return code;
}

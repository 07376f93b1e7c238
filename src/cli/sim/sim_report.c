/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_report.h"

#include <math.h>

#include "base/buffer.h"
#include "sim/open/job_figures.h"
#include "sim/open/sim_objective.h"

static const double normal_95 = 1.96;

enum { TEXT_MAX = 64 << 20, CELL_WIDTH = 40, CELL_MAX = 96 };

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
static void put_statistics(struct buffer *text, const struct job_cell *of, int figure, int decimals)
{
    const struct statistics *statistics = &of->figures[figure];
    double recordings = job_cell_recordings_error(of, figure);
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

static void put_changes(struct buffer *text, const char *policy, const char *over,
                        const struct job_cell *cell, int first_figure)
{
    buffer_printf(text, "  %-9s %-11s", policy, over);
    for (int i = 0; i < 3; i++)
        put_statistics(text, cell, first_figure + i, 1);
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    buffer_puts(text, "\n");
}

/* Names the changes at the end whose sign is uncertain because so few runs were recorded. */
static void put_open_signs(struct buffer *text, const struct job_cell *cell)
{
    static const char *const names[] = {"energy", "time", "cost"};
    const char *separator = "";

    for (int i = 0; i < 3; i++) {
        const struct statistics *statistics = &cell->figures[FIGURE_TAIL_ENERGY + i];
        double error = job_cell_recordings_error(cell, FIGURE_TAIL_ENERGY + i);

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

static void put_rest(struct buffer *text, const struct job_cell *cell)
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

static void put_heading(struct buffer *text, const struct job_cell *cell)
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

static void put_cell(struct buffer *text, const struct job_cell *cell)
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
            struct job_cell cell;
            int code = job_cell_make(plan, campaign, bootstrap, w, p, &cell, out_error);

            if (code < 0)
                return code;
            if (table != NULL)
                job_figures_add(table, &cell);
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
    struct table *table = for_people ? NULL : job_figures_new();
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    buffer_printf(&text, legend, cli_text(call, "traces"));
    if (replicates > 0)
        buffer_printf(&text, legend_recordings, replicates);
    else if (!plan->in_order)
        buffer_puts(&text, "What so few recorded runs leave open is not in it; --bootstrap 100 adds it.\n");
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/compare_report.h"

#include <math.h>
#include <stdio.h>

#include "shapes/shape_rows.h"
#include "shapes/shape_told.h"
#include "sim/open/sim_objective.h"

/* All settings that are needed to repeat the figures. */
struct told_settings {
    const char *traces, *seeds, *generator, *power_policy;
    const char *objective;
    double eta, max_slowdown, beta, profile_window_share;
    uint32_t window_observations;
    bool own_power_policy, own_objective, bounded;
};

static const struct shape_field settings_rows[] = {
    {SHAPE_AT(told_settings, traces), TOLD_ANY_TEXT, .null = SHAPE_OR_NULL,
     TOLD_ELSE("no traces were given")},
    {SHAPE_AT(told_settings, seeds), TOLD_ANY_TEXT},
    {SHAPE_AT(told_settings, eta), TOLD_NUMBER},
    {SHAPE_AT(told_settings, objective), TOLD_ANY_TEXT, SHAPE_IF(told_settings, own_objective)},
    {SHAPE_AT(told_settings, max_slowdown), TOLD_NUMBER, SHAPE_IF(told_settings, bounded)},
    {SHAPE_AT(told_settings, beta), TOLD_NUMBER, TOLD_ELSE("no early stopping")},
    {SHAPE_AT(told_settings, window_observations), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT(told_settings, profile_window_share), TOLD_NUMBER},
    {SHAPE_AT(told_settings, generator), TOLD_ANY_TEXT},
    {SHAPE_AT(told_settings, power_policy), TOLD_ANY_TEXT, SHAPE_IF(told_settings, own_power_policy)},
};
static const struct shape settings_shape = {SHAPE_OF(told_settings, settings_rows)};

struct told_comparison {
    struct told_settings settings;
};

static const struct shape_field comparison_rows[] = {
    {SHAPE_AT(told_comparison, settings), SHAPE_IS_STRUCT(&settings_shape)},
};
static const struct shape comparison_shape = {SHAPE_OF(told_comparison, comparison_rows)};

static void add_settings(struct table *table, const struct cli_call *call, const struct campaign_plan *plan,
                         const char *seeds)
{
    const struct power_policy *power = plan->parameters.power;
    const struct job_spec *spec = &plan->workloads[0].spec;
    const struct told_comparison told = {{.traces = cli_text(call, "traces"),
                                          .seeds = seeds,
                                          .generator = cli_text(call, "generator"),
                                          .power_policy = power != NULL ? power->name : NULL,
                                          .own_power_policy = power != NULL,
                                          .objective = cli_text(call, "objective"),
                                          .own_objective = cli_set(call, "objective"),
                                          .max_slowdown = sim_objective_bound(spec),
                                          .bounded = isfinite(sim_objective_bound(spec)),
                                          .eta = spec->eta,
                                          .beta = plan->parameters.beta,
                                          .profile_window_share = plan->parameters.profile_window,
                                          .window_observations = plan->parameters.window}};

    table_members(table, &comparison_shape, &told);
}

static int say_how(const struct cli_call *call, const struct campaign_plan *plan, size_t rival,
                   struct fly_error *out_error)
{
    char text[1024];

    snprintf(text, sizeof text,
             "%zu jobs x %zu seeds x %llu recurrences with the same luck for every policy. Regret in optimal "
             "runs;\nratio, jobs and runs won: against %s, with the 95 %% interval of the ratio over "
             "workloads.\nEnergy, time and score of all recurrences so far: change against the default, "
             "geometric mean over jobs.\nDear: runs in which some ten recurrences in a row had more than "
             "three with over 1.2 times the default's score.\nA search that ended early gets the default's "
             "score from there on.\nMeasuring power limits takes %g %% of a batch size's first epoch.\n\n",
             plan->workload_count, plan->seed_count, (unsigned long long)plan->recurrences,
             plan->policies[rival].name, 100.0 * plan->parameters.profile_window);
    return cli_emit_text(call, text, out_error);
}

static bool for_people(const struct compare_report *report)
{
    return cli_format(report->call) == TABLE_FORMAT_TABLE;
}

void compare_report_begin(struct compare_report *report, const struct cli_call *call)
{
    *report = (struct compare_report){.call = call};
    report->table = compare_rows_new(for_people(report));
}

void compare_report_end(struct compare_report *report)
{
    table_free(report->table);
}

int compare_report_add(struct compare_report *report, const struct compare_run *run,
                       struct fly_error *out_error)
{
    return compare_rows_add(report->table, run, for_people(report), out_error);
}

int compare_report_emit(struct compare_report *report, const struct campaign_plan *plan, size_t rival,
                        const char *seeds, struct fly_error *out_error)
{
    int code = for_people(report) ? say_how(report->call, plan, rival, out_error) : 0;

    if (!for_people(report))
        add_settings(report->table, report->call, plan, seeds);
    return code == 0 ? cli_emit_table(report->call, report->table, out_error) : code;
}

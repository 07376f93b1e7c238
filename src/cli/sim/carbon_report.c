/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/carbon_report.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text/iso_time.h"
#include "cli/options/output_path.h"
#include "shapes/shape_told.h"
#include "sim/statistics.h"

static const double percent = 100.0;

#define FIGURE_COLUMNS(key, title, decimals, unit, what)                                                  \
    {key "_mean", title, MEANING_REAL, decimals, unit, MEANING_GAUGE, "Mean over the jobs of " what "."}, \
        {key "_p10", "p10", MEANING_REAL, decimals, unit, MEANING_GAUGE, "Tenth percentile of that."},    \
    {                                                                                                     \
        key "_p90", "p90", MEANING_REAL, decimals, unit, MEANING_GAUGE, "Ninetieth percentile of that."   \
    }

static const struct meaning columns[] = {
    {"policy", "policy", MEANING_TEXT, 0, NULL, MEANING_FACT, "Policy that chooses what to run."},
    {"jobs", "jobs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Simulated jobs, one for each start."},
    {"late_jobs", "late", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Jobs that took longer than they may."},
    FIGURE_COLUMNS("time_s", "time (s)", 0, "s", "its time"),
    FIGURE_COLUMNS("energy_j", "energy (J)", 0, "J", "its energy"),
    FIGURE_COLUMNS("carbon_g", "carbon (g)", 1, "g", "its carbon"),
    FIGURE_COLUMNS("money", "money", 3, "money", "its money"),
    FIGURE_COLUMNS("time_change_percent", "time %", 2, "%", "the change of its time against 'max'"),
    FIGURE_COLUMNS("energy_saving_percent", "energy saved %", 2, "%",
                   "the energy that it saves against 'max'"),
    FIGURE_COLUMNS("carbon_saving_percent", "carbon saved %", 2, "%",
                   "the carbon that it saves against 'max'"),
    {"carbon_saving_against_static_percent", "of static %", MEANING_REAL, 2, "%", MEANING_GAUGE,
     "Percentage points that it saves more carbon than 'static', on average."},
    {"carbon_saving_against_mix_percent", "of mix %", MEANING_REAL, 2, "%", MEANING_GAUGE,
     "Percentage points that it saves more carbon than 'mix', on average."},
    {"gpu_energy_j_mean", "GPUs (J)", MEANING_REAL, 0, "J", MEANING_GAUGE, "Mean energy of a job's GPUs."},
    {"paused_s_mean", "paused (s)", MEANING_REAL, 0, "s", MEANING_GAUGE,
     "Mean time for which a job was paused."},
    {"limit_changes_mean", "changes", MEANING_REAL, 1, NULL, MEANING_GAUGE,
     "Mean number of changes of a job's limit."},
    {"actual_intensity_percent", "actual %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Share of the energy whose intensity is an actual value."},
};
const struct quantities carbon_report_quantities = {"a policy", QUANTITIES(columns)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

/* A figure of one job, relative to the same job under `max` and `static`. */
typedef double figure_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max);

static double time_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->time_s;
}

static double energy_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->energy_j;
}

static double grams_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->grams;
}

static double money_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->money;
}

static double time_change(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    return (outcome->time_s / max->time_s - 1.0) * percent;
}

static double energy_saving(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    return (1.0 - outcome->energy_j / max->energy_j) * percent;
}

static double carbon_saving(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    return (1.0 - outcome->grams / max->grams) * percent;
}

static double gpu_energy_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->gpu_energy_j;
}

static double paused_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->paused_s;
}

static double changes_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->changes;
}

static double actual_of(const struct carbon_outcome *outcome, const struct carbon_outcome *max)
{
    (void)max;
    return outcome->known_share * percent;
}

static const char no_price[] = "there is no --price", no_intensity[] = "there is no --intensity";

/* Figures with three columns each, in their order. */
static const struct {
    figure_of *of;
    const char *missing;
} spread_figures[] = {
    {time_of, ""},     {energy_of, ""},     {grams_of, no_intensity},      {money_of, no_price},
    {time_change, ""}, {energy_saving, ""}, {carbon_saving, no_intensity},
};

/* Figures with only their mean, after the one against static. */
static figure_of *const mean_figures[] = {gpu_energy_of, paused_of, changes_of};

static const struct carbon_outcome *outcome_of(const struct carbon_result *result, size_t policy,
                                               size_t start)
{
    return &result->outcomes[policy * result->campaign->starts + start];
}

static struct statistics spread_of(const struct carbon_result *result, size_t policy, figure_of *of,
                                   double *values)
{
    size_t starts = result->campaign->starts;

    for (size_t i = 0; i < starts; i++)
        values[i] = of(outcome_of(result, policy, i), outcome_of(result, result->max_policy, i));
    return statistics_of(values, starts);
}

static void add_real(struct table *table, double value, const char *missing)
{
    if (isnan(value))
        table_add_unavailable(table, NULL, missing);
    else
        table_add_real(table, value);
}

/* Returns by how many percentage points a policy saves more than another. */
static double saved_against(const struct carbon_result *result, size_t policy, size_t other, double *values)
{
    double saved = spread_of(result, policy, carbon_saving, values).mean;

    return saved - spread_of(result, other, carbon_saving, values).mean;
}

static void add_row(struct table *table, const struct carbon_result *result, size_t policy, double *values)
{
    const struct carbon_campaign *campaign = result->campaign;
    int64_t late = 0;

    for (size_t i = 0; i < campaign->starts; i++)
        late += outcome_of(result, policy, i)->late;
    table_add_text(table, carbon_policy_names[campaign->policies[policy]]);
    table_add_integer(table, (int64_t)campaign->starts);
    table_add_integer(table, late);
    for (size_t i = 0; i < sizeof spread_figures / sizeof spread_figures[0]; i++) {
        struct statistics figure = spread_of(result, policy, spread_figures[i].of, values);

        add_real(table, figure.mean, spread_figures[i].missing);
        add_real(table, figure.p10, spread_figures[i].missing);
        add_real(table, figure.p90, spread_figures[i].missing);
    }
    add_real(table, saved_against(result, policy, result->static_policy, values), no_intensity);
    add_real(table, saved_against(result, policy, result->mix_policy, values), no_intensity);
    for (size_t i = 0; i < sizeof mean_figures / sizeof mean_figures[0]; i++)
        table_add_real(table, spread_of(result, policy, mean_figures[i], values).mean);
    add_real(table,
             campaign->world->truths[CARBON_INTENSITY] == NULL
                 ? NAN
                 : spread_of(result, policy, actual_of, values).mean,
             no_intensity);
}

/* ---- what stands beside the rows ---- */

static const struct shape_field remarks_rows[] = {
    {SHAPE_AT(grid_remarks, missing), TOLD_SIZE},     {SHAPE_AT(grid_remarks, zero), TOLD_SIZE},
    {SHAPE_AT(grid_remarks, absurd), TOLD_SIZE},      {SHAPE_AT(grid_remarks, duplicates), TOLD_SIZE},
    {SHAPE_AT(grid_remarks, overlapping), TOLD_SIZE}, {SHAPE_AT(grid_remarks, unordered), TOLD_SIZE},
};
static const struct shape remarks_shape = {SHAPE_OF(grid_remarks, remarks_rows)};

struct told_signal {
    bool given;
    const char *source, *provider, *signal, *scope;
    size_t periods;
    int64_t step_s;
    struct grid_remarks remarks;
};

static const struct shape_field signal_rows[] = {
    {SHAPE_AT(told_signal, source), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, provider), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, signal), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, scope), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, periods), TOLD_SIZE},
    {SHAPE_AT(told_signal, step_s), TOLD_I64},
    {SHAPE_AT(told_signal, remarks), SHAPE_IS_STRUCT(&remarks_shape)},
};
static const struct shape signal_shape = {SHAPE_OF(told_signal, signal_rows)};

static struct told_signal told_signal(const struct grid_answer *answer, const char *source)
{
    const struct grid_series *series = answer != NULL ? &answer->actual : NULL;

    if (series == NULL)
        return (struct told_signal){.given = false};
    return (struct told_signal){
        .given = true,
        .source = source,
        .provider = series->kind.provider,
        .signal = grid_signal_name(series->kind.signal),
        .scope = grid_scope_name(series->kind.scope),
        .periods = series->count,
        .step_s = grid_series_step(series),
        .remarks = series->remarks,
    };
}

struct told_campaign {
    const char *profile;
    size_t gpus;
    double work_s, bound_s, max_limit_w, static_limit_w, host_power_w, pue;
    struct told_signal intensity, price;
    char first_start[ISO_TIME_TEXT_MAX], last_start[ISO_TIME_TEXT_MAX];
};

static const struct shape_field campaign_rows[] = {
    {SHAPE_AT(told_campaign, profile), TOLD_ANY_TEXT},
    {SHAPE_AT(told_campaign, gpus), TOLD_SIZE},
    {SHAPE_AT(told_campaign, work_s), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, bound_s), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, max_limit_w), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, static_limit_w), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, host_power_w), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, pue), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, intensity), SHAPE_IS_STRUCT(&signal_shape),
     SHAPE_IF(told_campaign, intensity.given)},
    {SHAPE_AT(told_campaign, price), SHAPE_IS_STRUCT(&signal_shape), SHAPE_IF(told_campaign, price.given)},
    {SHAPE_AT(told_campaign, first_start), TOLD_ANY_CHARS(told_campaign, first_start)},
    {SHAPE_AT(told_campaign, last_start), TOLD_ANY_CHARS(told_campaign, last_start)},
};
static const struct shape campaign_shape = {SHAPE_OF(told_campaign, campaign_rows)};

static void put_start(const struct carbon_campaign *campaign, size_t start, char text[ISO_TIME_TEXT_MAX])
{
    int64_t start_s = 0;

    (void)carbon_campaign_start(campaign, start, &start_s, NULL);
    iso_time_format(start_s, text);
}

static void add_members(struct table *table, const struct carbon_result *result)
{
    const struct carbon_campaign *campaign = result->campaign;
    const struct carbon_world *world = campaign->world;
    const struct carbon_profile *profile = world->profile;
    size_t limit = carbon_profile_static(profile, world->work_s, world->bound_s);
    struct told_campaign told = {
        .profile = result->profile,
        .gpus = result->source->gpus,
        .work_s = world->work_s,
        .bound_s = world->bound_s,
        .max_limit_w = profile->points[profile->fastest].limit_w,
        .static_limit_w = profile->points[limit].limit_w,
        .host_power_w = world->host_w,
        .pue = world->pue,
        .intensity = told_signal(world->answers[CARBON_INTENSITY], result->intensity),
        .price = told_signal(world->answers[CARBON_PRICE], result->price),
    };

    put_start(campaign, 0, told.first_start);
    put_start(campaign, campaign->starts - 1, told.last_start);
    table_members(table, &campaign_shape, &told);
}

/* For people: the few columns that answer the question. */
static const struct meaning short_columns[] = {
    TABLE_SHOWN("policy", MEANING_TEXT, 0),
    TABLE_SHOWN("late", MEANING_WHOLE, 0),
    TABLE_SHOWN("time %", MEANING_REAL, 2),
    TABLE_SHOWN("energy saved %", MEANING_REAL, 2),
    TABLE_SHOWN("carbon saved %", MEANING_REAL, 2),
    TABLE_SHOWN("p10", MEANING_REAL, 2),
    TABLE_SHOWN("p90", MEANING_REAL, 2),
    TABLE_SHOWN("more than static", MEANING_REAL, 2),
    TABLE_SHOWN("than mix", MEANING_REAL, 2),
    TABLE_SHOWN("carbon (g)", MEANING_REAL, 1),
    TABLE_SHOWN("changes", MEANING_REAL, 1),
};

static void add_short_row(struct table *table, const struct carbon_result *result, size_t policy,
                          double *values)
{
    struct statistics saving;
    int64_t late = 0;

    saving = spread_of(result, policy, carbon_saving, values);
    for (size_t i = 0; i < result->campaign->starts; i++)
        late += outcome_of(result, policy, i)->late;
    table_add_text(table, carbon_policy_names[result->campaign->policies[policy]]);
    table_add_integer(table, late);
    table_add_real(table, spread_of(result, policy, time_change, values).mean);
    table_add_real(table, spread_of(result, policy, energy_saving, values).mean);
    add_real(table, saving.mean, no_intensity);
    add_real(table, saving.p10, no_intensity);
    add_real(table, saving.p90, no_intensity);
    add_real(table, saved_against(result, policy, result->static_policy, values), no_intensity);
    add_real(table, saved_against(result, policy, result->mix_policy, values), no_intensity);
    add_real(table, spread_of(result, policy, grams_of, values).mean, no_intensity);
    table_add_real(table, spread_of(result, policy, changes_of, values).mean);
}

int carbon_report_emit(const struct cli_call *call, const struct carbon_result *result,
                       struct fly_error *out_error)
{
    bool people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct table *table = people ? table_new("flyball.sim.carbon/2", short_columns,
                                             sizeof short_columns / sizeof short_columns[0])
                                 : table_new("flyball.sim.carbon/2", columns, COLUMN_COUNT);
    double *values = malloc(result->campaign->starts * sizeof *values);
    int code;

    if (values == NULL) {
        table_free(table);
        return error_no_memory(out_error);
    }
    for (size_t i = 0; i < result->shown; i++) {
        if (people)
            add_short_row(table, result, i, values);
        else
            add_row(table, result, i, values);
    }
    if (!people)
        add_members(table, result);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    free(values);
    return code;
}

static void write_number(FILE *stream, double value)
{
    char text[NUMBER_TEXT_MAX];

    fprintf(stream, ",%s", isnan(value) ? "" : number_format(value, text));
}

int carbon_report_write(const struct carbon_result *result, const char *path, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = output_path_open(path, &file, out_error);

    if (code < 0)
        return code;
    fputs("policy,start,time_s,energy_j,gpu_energy_j,carbon_g,money,paused_s,limit_changes,pauses,late\n",
          file.stream);
    for (size_t policy = 0; policy < result->shown; policy++) {
        for (size_t i = 0; i < result->campaign->starts; i++) {
            const struct carbon_outcome *outcome = outcome_of(result, policy, i);
            char start[ISO_TIME_TEXT_MAX];
            int64_t start_s = 0;

            (void)carbon_campaign_start(result->campaign, i, &start_s, NULL);
            fprintf(file.stream, "%s,%s", carbon_policy_names[result->campaign->policies[policy]],
                    iso_time_format(start_s, start));
            write_number(file.stream, outcome->time_s);
            write_number(file.stream, outcome->energy_j);
            write_number(file.stream, outcome->gpu_energy_j);
            write_number(file.stream, outcome->grams);
            write_number(file.stream, outcome->money);
            write_number(file.stream, outcome->paused_s);
            fprintf(file.stream, ",%u,%u,%d\n", outcome->changes, outcome->pauses, outcome->late);
        }
    }
    return atomic_file_commit(&file, out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Periods of the grid's figures as a table, with the quality of each. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/carbon_view.h"

static const double percent = 100.0;

static const struct meaning columns[] = {
    {"start", "start", MEANING_DATE, 0, NULL, MEANING_FACT, "When the period begins."},
    {"end", "end", MEANING_DATE, 0, NULL, MEANING_FACT, "When it ends."},
    {"intensity_g_per_kwh", "g/kWh", MEANING_REAL, 1, "g/kWh", MEANING_GAUGE, "CO2 of a kWh in that period."},
    {"quality", "quality", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "What that figure is: 'measured', 'estimated', 'forecast', 'own forecast', 'fall-back' or 'unknown'."},
    {"forecast_g_per_kwh", "forecast", MEANING_REAL, 1, "g/kWh", MEANING_GAUGE,
     "What the provider had forecast for it."},
    /* Only for programs. */
    {"issued", "issued", MEANING_DATE, 0, NULL, MEANING_FACT, "When the provider said so."},
    {"provider", "provider", MEANING_TEXT, 0, NULL, MEANING_FACT, "Who says it."},
    {"zone", "zone", MEANING_TEXT, 0, NULL, MEANING_FACT, "Zone of the grid."},
    {"signal", "signal", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "'average' of all plants, 'marginal' of those that answer to more demand, or 'unknown'."},
    {"scope", "scope", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "'direct' for burning alone, 'life cycle' for plants and fuel too, or 'unknown'."},
};
const struct quantities carbon_view_quantities = {"a period of the grid's figures", QUANTITIES(columns)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0], SHARED_COUNT = 5 };

/* Returns when the provider issued it; a plan's view of a published forecast has the forecast's date. */
static int64_t issued_at(const struct grid_period *row, const struct grid_period *published)
{
    return row->quality == GRID_FORECAST && published != NULL ? published->issued_s : row->issued_s;
}

static void add_row(struct table *table, const struct carbon_view *view, const struct grid_period *row,
                    bool for_people)
{
    const struct grid_kind *kind = &view->answer.actual.kind;
    const struct grid_period *published = grid_series_at(&view->answer.published, row->start_s);
    char time[ISO_TIME_TEXT_MAX];

    table_add_text(table, iso_time_format(row->start_s, time));
    table_add_text(table, iso_time_format(row->end_s, time));
    if (isnan(row->value))
        table_add_unavailable(table, NULL, "the source has no value of that time");
    else
        table_add_real(table, row->value);
    table_add_text(table, grid_quality_name(row->quality));
    if (published != NULL && !isnan(published->value))
        table_add_real(table, published->value);
    else
        table_add_unavailable(table, "-", "the source published none");
    if (for_people)
        return;
    if (issued_at(row, published) == GRID_TIME_UNKNOWN)
        table_add_unavailable(table, NULL, "the source does not say");
    else
        table_add_text(table, iso_time_format(issued_at(row, published), time));
    table_add_text(table, kind->provider);
    table_add_text(table, kind->zone);
    table_add_text(table, grid_signal_name(kind->signal));
    table_add_text(table, grid_scope_name(kind->scope));
}

/* Adds for how much of the time there is a value of each quality, and the mean of the known part. */
static void add_summary(struct table *table, const struct carbon_view *view)
{
    double lengths[GRID_QUALITY_COUNT] = {0.0}, all_s = 0.0, known_s = 0.0, sum = 0.0;
    json_t *coverage = json_object();

    for (size_t i = 0; i < view->count; i++) {
        const struct grid_period *row = &view->rows[i];
        double length_s = (double)(row->end_s - row->start_s);

        lengths[row->quality] += length_s;
        all_s += length_s;
        if (!isnan(row->value)) {
            known_s += length_s;
            sum += row->value * length_s;
        }
    }
    for (int i = 0; i < GRID_QUALITY_COUNT; i++)
        json_object_set_new(coverage, grid_quality_name((enum grid_quality)i),
                            json_real(all_s > 0.0 ? lengths[i] / all_s * percent : 0.0));
    table_member(table, "mean_g_per_kwh", known_s > 0.0 ? json_real(sum / known_s) : json_null());
    table_member(table, "coverage_percent", coverage);
}

static void add_members(struct table *table, const struct carbon_view *view)
{
    const struct grid_kind *kind = &view->answer.actual.kind;

    table_member(table, "source", json_string(view->source));
    table_member(table, "provider", json_string(kind->provider));
    table_member(table, "zone", json_string(kind->zone));
    table_member(table, "signal", json_string(grid_signal_name(kind->signal)));
    table_member(table, "scope", json_string(grid_scope_name(kind->scope)));
    table_member(table, "remark",
                 view->answer.remark[0] != '\0' ? json_string(view->answer.remark) : json_null());
    add_summary(table, view);
}

int carbon_view_emit(const struct cli_call *call, const struct carbon_view *view, const char *schema,
                     struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct table *table =
        table_new(schema, columns, for_people ? (size_t)SHARED_COUNT : (size_t)COLUMN_COUNT);
    const struct grid_kind *kind = &view->answer.actual.kind;
    int code;

    for (size_t i = 0; i < view->count; i++)
        add_row(table, view, &view->rows[i], for_people);
    if (table != NULL)
        add_members(table, view);
    if (for_people)
        cli_note(call, "'%s': signal %s, scope %s", view->source, grid_signal_name(kind->signal),
                 grid_scope_name(kind->scope));
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code == 0 && cli_set(call, "svg") ? carbon_plot(view, cli_text(call, "svg"), out_error) : code;
}

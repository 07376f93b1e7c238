/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon now`, `history` and `forecast`: the grid's carbon intensity. */
#include "cli/carbon/carbon_view.h"
#include "cli/views/statement_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/carbon_commands.h"
#include "grid/forecast.h"
#include "shapes/shape_told.h"

enum { NS_PER_S = 1000000000, HOUR_S = 3600, DAY_S = 86400, PAST_DAYS_MOST = 366, AHEAD_DAYS_MOST = 31 };

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
static const struct quantities carbon_view_quantities = {"a period of the grid's figures",
                                                         QUANTITIES(columns)};
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

/* What stands beside the rows: the kind, and the share of the time that each quality has. */
struct told_view {
    const char *source, *provider, *zone, *signal, *scope, *remark;
    double mean_g_per_kwh; /* of the known part */
    struct quality_shares coverage_percent;
};
static const struct shape_field view_rows[] = {
    {SHAPE_AT(told_view, source), TOLD_ANY_TEXT},
    {SHAPE_AT(told_view, provider), TOLD_ANY_TEXT},
    {SHAPE_AT(told_view, zone), TOLD_ANY_TEXT},
    {SHAPE_AT(told_view, signal), TOLD_ANY_TEXT},
    {SHAPE_AT(told_view, scope), TOLD_ANY_TEXT},
    {SHAPE_AT(told_view, remark), TOLD_TEXT},
    {SHAPE_AT(told_view, mean_g_per_kwh), TOLD_NUMBER},
    {SHAPE_AT(told_view, coverage_percent), SHAPE_IS_STRUCT(&quality_share_shape)},
};
static const struct shape view_shape = {SHAPE_OF(told_view, view_rows)};

static void add_members(struct table *table, const struct carbon_view *view)
{
    const struct grid_kind *kind = &view->answer.actual.kind;
    struct told_view told = {view->source,
                             kind->provider,
                             kind->zone,
                             grid_signal_name(kind->signal),
                             grid_scope_name(kind->scope),
                             view->answer.remark,
                             NAN,
                             {{0.0}}};
    double *lengths = told.coverage_percent.of, all_s = 0.0, known_s = 0.0, sum = 0.0;

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
        lengths[i] = all_s > 0.0 ? lengths[i] / all_s : 0.0;
    if (known_s > 0.0)
        told.mean_g_per_kwh = sum / known_s;
    table_members(table, &view_shape, &told);
}

/* Prints the table, and draws the picture if it is wanted. `schema` is static. */
static int carbon_view_emit(const struct cli_call *call, const struct carbon_view *view, const char *schema,
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

static const char *const signal_names[] = {"average", "marginal", NULL};
static const enum grid_signal signals[] = {GRID_AVERAGE, GRID_MARGINAL};
static const char *const scope_names[] = {"direct", "life-cycle", NULL};
static const enum grid_scope scopes[] = {GRID_DIRECT, GRID_LIFE_CYCLE};

static const struct cli_option view_options[] = {
    {.name = "source",
     .alias = "zone",
     .type = CLI_TEXT,
     .placeholder = "SOURCE",
     .key = "carbon.source",
     .help = "Where figures come from, unless SOURCE is given: PROVIDER:PLACE, or a CSV file."},
    {.name = "signal",
     .type = CLI_CHOICE,
     .placeholder = "WHICH",
     .choices = signal_names,
     .key = "carbon.signal",
     .help = "Average or marginal intensities; what the provider usually gives unless set."},
    {.name = "scope",
     .type = CLI_CHOICE,
     .placeholder = "WHICH",
     .choices = scope_names,
     .key = "carbon.scope",
     .help = "Of burning the fuel, or of the whole life cycle; what the provider usually gives unless "
             "set."},
    {.name = "cached", .type = CLI_FLAG, .help = "Ask no server: show what was fetched before."}};
const struct cli_options carbon_view_options = CLI_OPTIONS(view_options);

static const struct cli_option svg_row[] = {{.name = "svg",
                                             .type = CLI_TEXT,
                                             .placeholder = "FILE",
                                             .help = "Draw the intensity over time into this file."}};
const struct cli_options carbon_svg_option = CLI_OPTIONS(svg_row);

void carbon_view_choose(const struct cli_call *call, struct grid_request *request)
{
    int signal = cli_choice(call, "signal"), scope = cli_choice(call, "scope");

    request->signal = signal >= 0 ? signals[signal] : GRID_SIGNAL_UNKNOWN;
    request->scope = scope >= 0 ? scopes[scope] : GRID_SCOPE_UNKNOWN;
}

/* Makes the request from the options; the command sets `from` and `to`. */
static int carbon_view_begin(const struct cli_call *call, struct carbon_view *view,
                             struct fly_error *out_error)
{
    const char *source = cli_operand_count(call) > 0 ? cli_operand(call, 0) : cli_text(call, "source");

    *view = (struct carbon_view){.source = source};
    if (source == NULL)
        return cli_usage(call, out_error,
                         "no source of the grid's figures given; name one as gb:national or "
                         "electricity-maps:DE, or set carbon.source");
    view->request = (struct grid_request){
        .quantity = GRID_CARBON,
        .now_s = clock_real.date(clock_real.state).ns / NS_PER_S,
        .cached_only = cli_flag(call, "cached"),
    };
    carbon_view_choose(call, &view->request);
    return 0;
}

int carbon_view_time(const struct cli_call *call, const char *option, int64_t otherwise, int64_t *out_s,
                     struct fly_error *out_error)
{
    *out_s = otherwise;
    if (!cli_set(call, option) || iso_time_parse_utc(cli_text(call, option), true, out_s))
        return 0;
    return cli_value_error(call, option, cli_text(call, option),
                           "a time as 2026-11-22T07:30Z, 2026-11-22T08:30+01:00 or 2026-11-22", out_error);
}

/* Reads the figures; warns of missing ones. */
static int carbon_view_read(const struct cli_call *call, struct carbon_view *view,
                            struct fly_error *out_error)
{
    int code = grid_read(view->source, &view->request, &view->answer, out_error);

    if (code == 0 && view->answer.remark[0] != '\0')
        cli_warn(call, "%s", view->answer.remark);
    return code;
}

static bool is_known(const struct grid_period *period)
{
    return period != NULL && !isnan(period->value);
}

/* Returns where the next period begins, if that is after `time_s` and before `end_s`. */
static int64_t next_start(const struct grid_series *series, int64_t time_s, int64_t end_s)
{
    for (size_t i = grid_series_find(series, time_s); i < series->count; i++) {
        if (series->periods[i].start_s > time_s)
            return series->periods[i].start_s < end_s ? series->periods[i].start_s : end_s;
    }
    return end_s;
}

/* Returns the period to show from `time_s` on. */
static struct grid_period row_at(const struct carbon_view *view, int64_t time_s, int64_t to_s)
{
    const struct grid_period *actual = grid_series_at(&view->answer.actual, time_s);
    const struct grid_period *published = grid_series_at(&view->answer.published, time_s);
    struct grid_period row = {
        .end_s = to_s, .value = NAN, .quality = GRID_UNKNOWN, .issued_s = GRID_TIME_UNKNOWN};

    if (is_known(actual)) {
        row = *actual;
    } else if (is_known(published)) {
        row = *published;
        row.end_s = next_start(&view->answer.actual, time_s, row.end_s);
    } else {
        if (actual != NULL)
            row.end_s = actual->end_s;
        row.end_s = next_start(&view->answer.actual, time_s, row.end_s);
        row.end_s = next_start(&view->answer.published, time_s, row.end_s);
    }
    if (row.end_s > to_s)
        row.end_s = to_s;
    row.start_s = time_s;
    return row;
}

/* Makes rows from what is known: actual values, else published ones, else unknown. FLY_ENOMEM, FLY_ELIMIT. */
static int carbon_view_sweep(struct carbon_view *view, int64_t from_s, int64_t to_s,
                             struct fly_error *out_error)
{
    /* Each border of either series ends at most one row. */
    size_t most = 2 * (view->answer.actual.count + view->answer.published.count) + 2;

    view->rows = malloc(most * sizeof view->rows[0]);
    if (view->rows == NULL)
        return error_no_memory(out_error);
    for (int64_t time_s = from_s; time_s < to_s && view->count < most; view->count++) {
        view->rows[view->count] = row_at(view, time_s, to_s);
        time_s = view->rows[view->count].end_s;
    }
    return 0;
}

/* Makes rows from now on, as a plan sees them (grid/forecast.h). */
static int carbon_view_forecast(struct carbon_view *view, int64_t from_s, int64_t to_s,
                                struct fly_error *out_error)
{
    const struct grid_forecast_request request = {.actual = &view->answer.actual,
                                                  .published = &view->answer.published,
                                                  .published_until_s = INT64_MAX,
                                                  .now_s = view->request.now_s,
                                                  .until_s = to_s,
                                                  .yearly_mean = NAN};
    size_t count, kept = 0;

    /* A constant needs no forecast, and has no periods from which to make one. */
    if (strcmp(view->answer.actual.kind.provider, grid_provider_constant.name) == 0)
        return carbon_view_sweep(view, from_s, to_s, out_error);
    count = grid_forecast(&request, NULL, 0);
    if (count == 0)
        return carbon_view_sweep(view, from_s, to_s, out_error);
    view->rows = malloc(count * sizeof view->rows[0]);
    if (view->rows == NULL)
        return error_no_memory(out_error);
    (void)grid_forecast(&request, view->rows, count);
    for (size_t i = 0; i < count; i++) {
        if (view->rows[i].end_s > from_s)
            view->rows[kept++] = view->rows[i];
    }
    if (kept > 0 && view->rows[0].start_s < from_s)
        view->rows[0].start_s = from_s;
    view->count = kept;
    return 0;
}

static void carbon_view_end(struct carbon_view *view)
{
    free(view->rows);
    grid_answer_deinit(&view->answer);
    view->rows = NULL;
    view->count = 0;
}

/* Reads what is asked for, makes rows of it and shows them. */
typedef int view_fn(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error);

static int show(const struct cli_call *call, view_fn *times, view_fn *rows, const char *schema,
                struct fly_error *out_error)
{
    struct carbon_view view;
    int code = carbon_view_begin(call, &view, out_error);

    if (code < 0)
        return code;
    code = times(call, &view, out_error);
    if (code == 0)
        code = carbon_view_read(call, &view, out_error);
    if (code == 0)
        code = rows(call, &view, out_error);
    if (code == 0)
        code = carbon_view_emit(call, &view, schema, out_error);
    carbon_view_end(&view);
    return code;
}

/* ---- now ---- */

static int now_times(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    (void)call;
    (void)out_error;
    view->request.from_s = view->request.now_s - DAY_S;
    view->request.to_s = view->request.now_s + HOUR_S;
    return 0;
}

/* Finds the value of the current period if there is one, else the value that a plan would use. */
static int now_rows(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    int64_t now_s = view->request.now_s;
    const struct grid_period *running = grid_series_at(&view->answer.actual, now_s);
    int code;

    (void)call;
    if (is_known(running))
        code = carbon_view_sweep(view, now_s, running->end_s, out_error);
    else
        code = carbon_view_forecast(view, now_s, now_s + HOUR_S, out_error);
    if (code == 0 && view->count > 1)
        view->count = 1;
    return code;
}

static int carbon_now_run(const struct cli_call *call, struct fly_error *out_error)
{
    return show(call, now_times, now_rows, "flyball.carbon.now/1", out_error);
}

const struct cli_command cmd_carbon_now = {
    .words = "carbon now",
    .summary = "show the grid's carbon intensity at this moment",
    .paragraphs =
        {"The actual value of the running period where the source has one already; else the published "
         "forecast of it, else one made from the past, the last value for two hours, or the mean of the "
         "past day, and at last 'unknown'. The column 'quality' says which.",
         "Sources: gb:national, gb:13, gb:RG10 (Great Britain, no key), electricity-maps:ZONE, "
         "watttime:REGION, carbon-aware:LOCATION (a Carbon Aware SDK of the site's), a CSV file, or "
         "constant:380. Servers are asked at most once in each period by all processes of a user together; "
         "the rest comes from a cache."},
    .shared = {&carbon_view_options, &carbon_svg_option},
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon now gb:national", "show what a kWh in Great Britain costs now"}},
    .outputs = {&carbon_view_quantities},
    .run = carbon_now_run,
};

/* ---- history ---- */

static const struct cli_option history_options[] = {
    {.name = "from",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it from then on, ISO 8601, UTC unless it says otherwise; the last 24 hours, or all of a "
             "file, unless set."},
    {.name = "to",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it until then; until now unless set."},
};

static int history_times(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    struct grid_request *request = &view->request;
    int code = carbon_view_time(call, "to", request->now_s, &request->to_s, out_error);

    if (code == 0)
        code = carbon_view_time(call, "from", request->to_s - DAY_S, &request->from_s, out_error);
    if (code < 0)
        return code;
    if (request->to_s <= request->from_s || request->to_s - request->from_s > PAST_DAYS_MOST * (int64_t)DAY_S)
        return cli_usage(call, out_error, "--to has to be after --from, by at most %d days", PAST_DAYS_MOST);
    return 0;
}

/* Shows a file completely unless the options say otherwise. */
static void widen(const struct cli_call *call, struct carbon_view *view)
{
    const struct grid_series *actual = &view->answer.actual;

    if (!grid_is_local(view->source) || actual->count < 2)
        return;
    if (!cli_set(call, "from"))
        view->request.from_s = actual->periods[0].start_s;
    if (!cli_set(call, "to"))
        view->request.to_s = actual->periods[actual->count - 1].end_s;
}

static int history_rows(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    widen(call, view);
    return carbon_view_sweep(view, view->request.from_s, view->request.to_s, out_error);
}

static int carbon_history_run(const struct cli_call *call, struct fly_error *out_error)
{
    return show(call, history_times, history_rows, "flyball.carbon.history/1", out_error);
}

const struct cli_command cmd_carbon_history = {
    .words = "carbon history",
    .summary = "show the grid's carbon intensity of the past",
    .paragraphs =
        {"For each period the actual value, measured or estimated; where the source has none, what it "
         "forecast for it; where it has neither, 'unknown'. The column 'forecast' is the last published "
         "forecast of the period. JSON says how much of the time each quality covers, and the mean.",
         "Sources are those of 'flyball carbon now'. Values that ended more than a week before they were "
         "fetched "
         "are final; younger ones are fetched again, and a provider's revision replaces what it revises."},
    .options = history_options,
    .option_count = sizeof history_options / sizeof history_options[0],
    .shared = {&carbon_view_options, &carbon_svg_option},
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon history gb:national --from 2026-11-01 --to 2026-11-08 --format csv",
                  "write a week as CSV"},
                 {"flyball carbon history us_ciso_2022.csv --from 2022-07-01 --to 2022-07-02 --svg day.svg",
                  "draw a day of a file"}},
    .outputs = {&carbon_view_quantities},
    .run = carbon_history_run,
};

/* ---- forecast ---- */

static const struct cli_option forecast_options[] = {
    {.name = "from",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it from then on, ISO 8601, UTC unless it says otherwise; from now on unless set."},
    {.name = "to",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Show it until then, at most 31 days from now; for 24 hours unless set."},
};

static int forecast_times(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    int64_t now_s = view->request.now_s, to_s = 0;
    int code = carbon_view_time(call, "from", now_s, &view->from_s, out_error);

    if (code == 0)
        code = carbon_view_time(call, "to", (view->from_s > now_s ? view->from_s : now_s) + DAY_S, &to_s,
                                out_error);
    if (code < 0)
        return code;
    if (view->from_s < now_s)
        return cli_usage(call, out_error,
                         "a forecast begins now at the earliest; for the past there is "
                         "'flyball carbon history'");
    if (to_s <= view->from_s || to_s > now_s + AHEAD_DAYS_MOST * (int64_t)DAY_S)
        return cli_usage(call, out_error, "--to has to be after --from and within %d days", AHEAD_DAYS_MOST);
    view->request.from_s = now_s - GRID_FORECAST_DAYS * (int64_t)DAY_S;
    view->request.to_s = to_s;
    return 0;
}

static int forecast_rows(const struct cli_call *call, struct carbon_view *view, struct fly_error *out_error)
{
    (void)call;
    return carbon_view_forecast(view, view->from_s, view->request.to_s, out_error);
}

static int carbon_forecast_run(const struct cli_call *call, struct fly_error *out_error)
{
    return show(call, forecast_times, forecast_rows, "flyball.carbon.forecast/1", out_error);
}

const struct cli_command cmd_carbon_forecast = {
    .words = "carbon forecast",
    .summary = "show the grid's carbon intensity from now on",
    .paragraphs =
        {"What a plan would go by: the published forecast as far as it reaches, then one made from the "
         "past 14 days, then the last value for two hours, or the mean. The column 'quality' says which "
         "it was for each period; nothing known is 'unknown', never 0.",
         "Sources are those of 'flyball carbon now'. The past is asked for as well, which some keys do "
         "not give; a warning says so, and the forecast is made from what there is."},
    .options = forecast_options,
    .option_count = sizeof forecast_options / sizeof forecast_options[0],
    .shared = {&carbon_view_options, &carbon_svg_option},
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon forecast gb:national --svg tomorrow.svg", "draw the next 24 hours"}},
    .outputs = {&carbon_view_quantities},
    .run = carbon_forecast_run,
};

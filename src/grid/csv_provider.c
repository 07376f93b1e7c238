/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series from CSV files with a header. Columns are found by name, others are ignored:
 *
 *     timestamp             start of the period, ISO 8601; UTC where it does not say
 *     end                   its end; without this column a period is as long as the
 *                           usual step from one row to the next
 *     actual_g_per_kwh, g_per_kwh, kg_per_mwh, lbs_co2_per_mwh     a direct intensity
 *     lifecycle_g_per_kwh   one of the whole life cycle, taken when that is asked for
 *     price_per_kwh, price_per_mwh      a price
 *     forecast_g_per_kwh, forecast_lifecycle_g_per_kwh, forecast_kg_per_mwh, forecast_lbs_co2_per_mwh,
 *     forecast_price_per_kwh, forecast_price_per_mwh     the published forecast for that period
 *     quality               measured, estimated, derived, marginal, missing, suspect
 *
 * An empty field is an unknown value. A forecast belongs to the value in its row. A forecast that
 * belongs to no value, or whose column begins with "forecast" and is none of these, is refused if
 * it contains a figure. If a file has a direct intensity, forecast_g_per_kwh is a forecast of
 * that.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/math/order.h"
#include "base/number.h"
#include "base/text/csv.h"
#include "base/text/iso_time.h"
#include "base/words.h"
#include "grid/providers.h"
#include "model/grid_series.h"
#include "model/grid_units.h"

static const char time_column[] = "timestamp", end_column[] = "end", quality_column[] = "quality";

/* The columns that hold the value, the preferred one first. */
static const struct {
    const char *name;
    enum grid_unit unit;
    enum grid_scope scope;
} value_columns[] = {
    {"actual_g_per_kwh", GRID_G_PER_KWH, GRID_DIRECT},
    {"lifecycle_g_per_kwh", GRID_G_PER_KWH, GRID_LIFE_CYCLE},
    {"g_per_kwh", GRID_G_PER_KWH, GRID_SCOPE_UNKNOWN},
    {"kg_per_mwh", GRID_KG_PER_MWH, GRID_SCOPE_UNKNOWN},
    {"lbs_co2_per_mwh", GRID_LB_PER_MWH, GRID_SCOPE_UNKNOWN},
    {"price_per_kwh", GRID_MONEY_PER_KWH, GRID_SCOPE_UNKNOWN},
    {"price_per_mwh", GRID_MONEY_PER_MWH, GRID_SCOPE_UNKNOWN},
};
enum { VALUE_COLUMNS = sizeof value_columns / sizeof value_columns[0] };
enum { DIRECT_COLUMN = 0 };

/* Columns of forecasts, the preferred one first. A forecast without a stated scope has that of the value. */
static const struct {
    const char *name;
    enum grid_unit unit;
    enum grid_scope scope;
} forecast_columns[] = {
    {"forecast_g_per_kwh", GRID_G_PER_KWH, GRID_SCOPE_UNKNOWN},
    {"forecast_lifecycle_g_per_kwh", GRID_G_PER_KWH, GRID_LIFE_CYCLE},
    {"forecast_kg_per_mwh", GRID_KG_PER_MWH, GRID_SCOPE_UNKNOWN},
    {"forecast_lbs_co2_per_mwh", GRID_LB_PER_MWH, GRID_SCOPE_UNKNOWN},
    {"forecast_price_per_kwh", GRID_MONEY_PER_KWH, GRID_SCOPE_UNKNOWN},
    {"forecast_price_per_mwh", GRID_MONEY_PER_MWH, GRID_SCOPE_UNKNOWN},
};
enum { FORECAST_COLUMNS = sizeof forecast_columns / sizeof forecast_columns[0] };

static const char *const quality_words[] = {"measured", "estimated", "derived", "marginal",
                                            "missing",  "suspect",   NULL};
enum { WORD_MARGINAL = 3, WORD_COUNT = 6 };
static const enum grid_quality qualities[WORD_COUNT] = {GRID_MEASURED, GRID_ESTIMATED, GRID_ESTIMATED,
                                                        GRID_MEASURED, GRID_UNKNOWN,   GRID_UNKNOWN};

/* Which columns the file has, as the index of each among the columns asked for, or -1. */
struct layout {
    const char *columns[CSV_COLUMNS_MAX];
    size_t count;
    int value; /* index in value_columns */
    int end, forecast, quality;
    enum grid_unit forecast_unit;
    size_t stray;                   /* from here on: forecasts that belong to no value of the file */
    char *unknown[CSV_COLUMNS_MAX]; /* names of other columns that begin with "forecast"; owned */
    size_t unknown_count;
};

struct reading {
    struct csv csv;
    struct layout layout;
    struct grid_answer answer;
    bool kind_known; /* whether the file said average or marginal */
};

/* Returns 1 if the file has a column, 0 if not, or another error. */
static int has_column(const char *path, const char *name, struct fly_error *out_error)
{
    const char *const columns[] = {time_column, name};
    struct fly_error error;
    struct csv csv;
    int code = csv_open(&csv, path, columns, 2, &error);

    if (code == 0)
        csv_close(&csv);
    else if (code != FLY_EDATA && out_error != NULL)
        *out_error = error;
    return code == 0 ? 1 : code == FLY_EDATA ? 0 : code;
}

static int add_column(struct layout *layout, const char *path, const char *name, struct fly_error *out_error)
{
    int code = has_column(path, name, out_error);

    if (code <= 0)
        return code < 0 ? code : -1;
    layout->columns[layout->count] = name;
    return (int)layout->count++;
}

static bool fits(int column, const struct grid_request *request)
{
    bool price = grid_unit_is_price(value_columns[column].unit);
    enum grid_scope scope = value_columns[column].scope;

    if (price != (request->quantity == GRID_PRICE))
        return false;
    return price || request->scope == GRID_SCOPE_UNKNOWN || scope == GRID_SCOPE_UNKNOWN ||
           scope == request->scope;
}

/* Returns whether the file has a value of that sort, to which a forecast may belong. */
static bool has_value(const char *path, bool price, enum grid_scope scope)
{
    for (int i = 0; i < VALUE_COLUMNS; i++) {
        if (price == grid_unit_is_price(value_columns[i].unit) &&
            (scope == GRID_SCOPE_UNKNOWN || scope == value_columns[i].scope) &&
            has_column(path, value_columns[i].name, NULL) > 0)
            return true;
    }
    return false;
}

/* Returns whether a forecast belongs to the value that is read. */
static bool belongs(const char *path, int forecast, int value)
{
    enum grid_scope scope = value_columns[value].scope, said = forecast_columns[forecast].scope;

    if (grid_unit_is_price(forecast_columns[forecast].unit) != grid_unit_is_price(value_columns[value].unit))
        return false;
    if (said != GRID_SCOPE_UNKNOWN || scope != GRID_LIFE_CYCLE)
        return said == GRID_SCOPE_UNKNOWN || said == scope;
    return has_column(path, value_columns[DIRECT_COLUMN].name, NULL) == 0;
}

/* Every forecast in the file is used, belongs to another of its values, or is refused. */
static int find_forecast(const char *path, struct layout *layout, struct fly_error *out_error)
{
    const char *strays[FORECAST_COLUMNS];
    size_t stray_count = 0;

    layout->forecast = -1;
    for (int i = 0; i < FORECAST_COLUMNS; i++) {
        enum grid_unit unit = forecast_columns[i].unit;
        bool price = grid_unit_is_price(unit);

        if (has_column(path, forecast_columns[i].name, NULL) <= 0)
            continue;
        if (!belongs(path, i, layout->value)) {
            if (has_value(path, price, forecast_columns[i].scope))
                continue;
            strays[stray_count++] = forecast_columns[i].name;
            continue;
        }
        if (layout->forecast >= 0)
            return error_set(out_error, FLY_EDATA,
                             "%s: two forecasts of '%s', in the columns '%s' and '%s'; keep one of them",
                             path, value_columns[layout->value].name, layout->columns[layout->forecast],
                             forecast_columns[i].name);
        layout->columns[layout->count] = forecast_columns[i].name;
        layout->forecast = (int)layout->count++;
        layout->forecast_unit = unit;
    }
    layout->stray = layout->count;
    for (size_t i = 0; i < stray_count; i++)
        layout->columns[layout->count++] = strays[i];
    return 0;
}

static void layout_deinit(struct layout *layout)
{
    while (layout->unknown_count > 0)
        free(layout->unknown[--layout->unknown_count]);
}

static bool is_unknown_forecast(const char *name)
{
    if (strncasecmp(name, "forecast", strlen("forecast")) != 0)
        return false;
    for (int i = 0; i < FORECAST_COLUMNS; i++) {
        if (strcmp(name, forecast_columns[i].name) == 0)
            return false;
    }
    return true;
}

/* Finds columns that begin with "forecast" and are unknown. */
static int find_unknown_forecasts(const char *path, struct layout *layout, struct fly_error *out_error)
{
    const char *const columns[] = {time_column};
    struct csv csv;
    char *name;
    int code = csv_open(&csv, path, columns, 1, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < csv.field_count && code == 0; i++) {
        if (!is_unknown_forecast(csv.fields[i]))
            continue;
        name = strdup(csv.fields[i]);
        if (name == NULL) {
            code = error_no_memory(out_error);
        } else {
            layout->columns[layout->count++] = name;
            layout->unknown[layout->unknown_count++] = name;
        }
    }
    csv_close(&csv);
    return code;
}

static int find_layout(const struct grid_request *request, struct layout *out_layout,
                       struct fly_error *out_error)
{
    struct layout layout = {.columns = {time_column}, .count = 1, .value = -1};
    const char *path = request->place;
    int code;

    for (int i = 0; i < VALUE_COLUMNS && layout.value < 0; i++) {
        if (!fits(i, request))
            continue;
        code = has_column(path, value_columns[i].name, out_error);
        if (code < 0)
            return code;
        if (code > 0) {
            layout.value = i;
            layout.columns[layout.count++] = value_columns[i].name;
        }
    }
    if (layout.value < 0)
        return error_set(
            out_error, FLY_EDATA,
            "%s: expected a header with the columns 'timestamp' and '%s'%s; rename the file's columns", path,
            request->quantity == GRID_PRICE ? "price_per_kwh" : "g_per_kwh",
            request->scope == GRID_LIFE_CYCLE ? " (or 'lifecycle_g_per_kwh')" : "");
    layout.end = add_column(&layout, path, end_column, NULL);
    layout.quality = add_column(&layout, path, quality_column, NULL);
    code = find_forecast(path, &layout, out_error);
    if (code == 0)
        code = find_unknown_forecasts(path, &layout, out_error);
    if (code == 0)
        *out_layout = layout;
    else
        layout_deinit(&layout);
    return code;
}

static bool is_none(const char *text)
{
    return text[0] == '\0' || strcmp(text, "nan") == 0 || strcmp(text, "null") == 0;
}

static int read_value(const struct reading *reading, int column, enum grid_unit unit, double *out_value,
                      struct fly_error *out_error)
{
    const char *text = csv_field(&reading->csv, (size_t)column);
    double value = NAN;

    if (!is_none(text) && !number_parse_double(text, &value))
        return csv_refuse(&reading->csv, (size_t)column, "a number, or nothing where it is not known",
                          "correct it or leave it empty", out_error);
    *out_value = grid_unit_convert(unit, value);
    return 0;
}

static int read_time(const struct reading *reading, int column, int64_t *out_s, struct fly_error *out_error)
{
    if (iso_time_parse_utc(csv_field(&reading->csv, (size_t)column), true, out_s))
        return 0;
    return csv_refuse(&reading->csv, (size_t)column, "a time as 2023-01-01T00:30:00Z", "correct it",
                      out_error);
}

/* Rows say average or marginal, and all rows must say the same. */
static int read_quality(struct reading *reading, struct grid_period *period, struct fly_error *out_error)
{
    const char *text = csv_field(&reading->csv, (size_t)reading->layout.quality);
    int word = word_index(text, quality_words, WORD_COUNT);
    enum grid_signal signal = word == WORD_MARGINAL ? GRID_MARGINAL : GRID_AVERAGE;

    if (text[0] == '\0')
        return 0;
    if (word < 0)
        return csv_refuse(&reading->csv, (size_t)reading->layout.quality,
                          "measured, estimated, derived, marginal, missing or suspect", "correct it",
                          out_error);
    period->quality = qualities[word];
    if (period->quality == GRID_UNKNOWN) {
        /* A suspect zero is counted as a zero. */
        period->value = period->value == 0.0 ? 0.0 : NAN;
        return 0;
    }
    if (reading->kind_known && reading->answer.actual.kind.signal != signal)
        return csv_refuse(&reading->csv, (size_t)reading->layout.quality,
                          "average figures throughout, or marginal ones", "make two files of it", out_error);
    reading->kind_known = true;
    reading->answer.actual.kind.signal = reading->answer.published.kind.signal = signal;
    return 0;
}

static int read_row(struct reading *reading, struct fly_error *out_error)
{
    const struct layout *layout = &reading->layout;
    enum grid_unit unit = value_columns[layout->value].unit;
    struct grid_period period = {.quality = GRID_MEASURED, .issued_s = GRID_TIME_UNKNOWN};
    int code = read_time(reading, 0, &period.start_s, out_error);

    period.end_s = period.start_s + 1; /* until the usual step is known */
    if (code == 0 && layout->end >= 0)
        code = read_time(reading, layout->end, &period.end_s, out_error);
    if (code == 0)
        code = read_value(reading, 1, unit, &period.value, out_error);
    if (code == 0 && layout->quality >= 0)
        code = read_quality(reading, &period, out_error);
    for (size_t i = layout->stray; i < layout->count && code == 0; i++) {
        if (!is_none(csv_field(&reading->csv, i)))
            code = csv_refuse(&reading->csv, i, "a forecast of a value that the file has",
                              "name the column after its value, as forecast_g_per_kwh, or take it out",
                              out_error);
    }
    if (code == 0)
        code = grid_series_add(&reading->answer.actual, &period, out_error);
    if (code < 0 || layout->forecast < 0)
        return code;
    period.quality = GRID_FORECAST;
    code = read_value(reading, layout->forecast, layout->forecast_unit, &period.value, out_error);
    if (code == 0 && !isnan(period.value))
        code = grid_series_add(&reading->answer.published, &period, out_error);
    return code;
}

/* Returns the median step from one start to the next later one; 0 with fewer than two starts. */
static int64_t usual_step(const struct grid_series *series)
{
    int64_t *starts = malloc((series->count + 1) * sizeof *starts), step_s = 0;
    size_t count = 0;

    if (starts == NULL)
        return 0;
    for (size_t i = 0; i < series->count; i++)
        starts[i] = series->periods[i].start_s;
    qsort(starts, series->count, sizeof *starts, order_i64);
    for (size_t i = 1; i < series->count; i++) {
        if (starts[i] > starts[i - 1])
            starts[count++] = starts[i] - starts[i - 1];
    }
    qsort(starts, count, sizeof *starts, order_i64);
    if (count > 0)
        step_s = starts[count / 2];
    free(starts);
    return step_s;
}

static int give_lengths(struct reading *reading, const char *path, struct fly_error *out_error)
{
    int64_t step_s = usual_step(&reading->answer.actual);

    if (reading->layout.end >= 0)
        return 0;
    if (step_s <= 0)
        return error_set(out_error, FLY_EDATA,
                         "%s: expected two rows or more, from which to tell the length of a period; add a "
                         "column 'end'",
                         path);
    for (size_t i = 0; i < reading->answer.actual.count; i++)
        reading->answer.actual.periods[i].end_s = reading->answer.actual.periods[i].start_s + step_s;
    for (size_t i = 0; i < reading->answer.published.count; i++)
        reading->answer.published.periods[i].end_s = reading->answer.published.periods[i].start_s + step_s;
    return 0;
}

static int read_rows(struct reading *reading, const char *path, struct fly_error *out_error)
{
    int code = csv_open(&reading->csv, path, reading->layout.columns, reading->layout.count, out_error);
    int more = code;

    if (code < 0)
        return code;
    while (code == 0 && (more = csv_next(&reading->csv, out_error)) > 0)
        code = read_row(reading, out_error);
    csv_close(&reading->csv);
    if (code == 0)
        code = more;
    if (code == 0)
        code = give_lengths(reading, path, out_error);
    if (code == 0)
        code = grid_series_settle(&reading->answer.actual, out_error);
    if (code == 0)
        grid_series_count_absent(&reading->answer.actual);
    if (code == 0)
        code = grid_series_settle(&reading->answer.published, out_error);
    return code;
}

static int csv_read(const struct grid_request *request, struct grid_answer *out_answer,
                    struct fly_error *out_error)
{
    struct grid_kind kind = {.quantity = request->quantity, .signal = GRID_SIGNAL_UNKNOWN, .provider = "csv"};
    struct reading reading = {0};
    int code = find_layout(request, &reading.layout, out_error);

    if (code < 0)
        return code;
    if (request->quantity == GRID_CARBON)
        kind.scope = value_columns[reading.layout.value].scope;
    grid_series_init(&reading.answer.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&reading.answer.published, &kind, GRID_PERIODS_MAX);
    code = read_rows(&reading, request->place, out_error);
    layout_deinit(&reading.layout);
    if (code == 0)
        *out_answer = reading.answer;
    else
        grid_answer_deinit(&reading.answer);
    return code;
}

const struct grid_provider grid_provider_csv = {
    .name = "csv",
    .read = csv_read,
};

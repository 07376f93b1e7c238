/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Web API of the Green Software Foundation's Carbon Aware SDK, which a site runs itself over
 * a source of its choice. Only the site knows whether that source is average or marginal, direct
 * or of the life cycle. So figures get the kind that the request states, or none.
 *
 *     carbon-aware:eastus
 *
 * Rows name the region of that source, which is rarely the location that was asked for: 'westus' is
 * answered by CAISO_NORTH. All rows of an answer have to name the same one.
 *
 * The API has three spellings for one thing. A forecast's points may be means over a window that
 * is longer than the distance to the next point; those would count time twice, and are refused.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"

static const double longest_s = 31 * 86400.0, minute_s = 60.0;

static int aware_write_path(const struct online_question *question, struct buffer *url,
                            struct fly_error *out_error)
{
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX];

    (void)out_error;
    if (question->query == ONLINE_FORECAST)
        buffer_printf(url, "/emissions/forecasts/current?location=%s", question->place);
    else
        buffer_printf(url, "/emissions/bylocation?location=%s&time=%s&toTime=%s", question->place,
                      iso_time_format(question->from_s, from), iso_time_format(question->to_s, to));
    return 0;
}

/* ---- what it answers ---- */

/* The members of a duration's two spellings are next to each other: minutes, or hours as a text. */
struct aware_row {
    const char *location, *start, *duration;
    double minutes, value;
};
#define AWARE_ROWS(start_name, value_name)                                                                  \
    {SHAPE_AT(aware_row, location), ONLINE_TEXT}, {SHAPE_AT_AS(start_name, aware_row, start), ONLINE_TEXT}, \
        {SHAPE_AT(aware_row, duration), ONLINE_TEXT},                                                       \
        {SHAPE_AT_AS("duration", aware_row, minutes), SHAPE_IS_NUMBER(SHAPE_ANY), .need = SHAPE_OPTIONAL,   \
         .loose = true},                                                                                    \
    {                                                                                                       \
        SHAPE_AT_AS(value_name, aware_row, value), ONLINE_VALUE                                             \
    }
static const struct shape_field actual_rows[] = {AWARE_ROWS("time", "rating")};
static const struct shape_field point_rows[] = {AWARE_ROWS("timestamp", "value")};
static const struct shape actual_shape = {SHAPE_OF(aware_row, actual_rows)};
static const struct shape point_shape = {SHAPE_OF(aware_row, point_rows)};

struct aware_forecast {
    const char *issued;
    const struct aware_row *rows;
    size_t count;
};
static const struct shape_field forecast_rows[] = {
    {SHAPE_AT_AS("generatedAt", aware_forecast, issued), ONLINE_TEXT},
    {SHAPE_AT_AS("forecastData", aware_forecast, rows),
     SHAPE_IS_STRUCTS(&point_shape, UINT32_MAX, aware_forecast, count), .expected = "an array"},
};
static const struct shape forecast_shape = {SHAPE_OF(aware_forecast, forecast_rows)};

struct aware_answer {
    const struct aware_row *rows;
    const struct aware_forecast *forecasts;
    size_t count;
};
static const struct shape_field answer_rows[] = {
    {.name = "",
     .at = offsetof(struct aware_answer, rows),
     SHAPE_IS_STRUCTS(&actual_shape, UINT32_MAX, aware_answer, count),
     .expected = "an array"}};
static const struct shape_field forecasts_rows[] = {
    {.name = "",
     .at = offsetof(struct aware_answer, forecasts),
     SHAPE_IS_STRUCTS(&forecast_shape, UINT32_MAX, aware_answer, count),
     .expected = "an array"}};
static const struct shape answer_shape = {SHAPE_OF(aware_answer, answer_rows), .bare = true};
static const struct shape forecasts_shape = {SHAPE_OF(aware_answer, forecasts_rows), .bare = true};

/* ---- what it means ---- */

/* Adds a row of either spelling, in the same region as `first`. */
static int add_row(const struct online_question *question, const struct aware_row *row,
                   const struct aware_row *first, int64_t issued_s, struct grid_series *series,
                   struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    struct grid_period period = {.quality = forecast ? GRID_FORECAST : GRID_MEASURED,
                                 .value = online_value(row->value, GRID_G_PER_KWH),
                                 .issued_s = issued_s};
    double duration_s = row->minutes * minute_s;

    if (strcasecmp(row->location, first->location) != 0)
        return error_set(out_error, FLY_EDATA,
                         "'location': rows of '%.40s' and of '%.40s' in one answer for '%.40s'; ask for a "
                         "location that has one region",
                         first->location, row->location, question->place);
    if (!online_time(row->start, &period.start_s))
        return online_refuse(forecast ? "timestamp" : "time", "a time as 2022-06-01T12:00:00+00:00",
                             out_error);
    if (row->duration[0] != '\0')
        (void)iso_duration_parse(row->duration, &duration_s);
    if (!(duration_s >= 1.0) || duration_s > longest_s)
        return online_refuse("duration", "minutes, or hours as 00:05:00", out_error);
    period.end_s = period.start_s + (int64_t)duration_s;
    return grid_series_add(series, &period, out_error);
}

static int compare_starts(const void *left, const void *right)
{
    const struct grid_period *a = left, *b = right;

    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/* Checks one forecast: its windows must not overlap the start of the next one. */
static int check_windows(struct grid_series *series, struct fly_error *out_error)
{
    if (series->count > 1)
        qsort(series->periods, series->count, sizeof series->periods[0], compare_starts);
    for (size_t i = 1; i < series->count; i++) {
        const struct grid_period *before = &series->periods[i - 1], *next = &series->periods[i];

        if (next->start_s > before->start_s && next->start_s < before->end_s)
            return error_set(out_error, FLY_EDATA,
                             "'duration': the points are means over windows that overlap; see which "
                             "windowSize the service adds");
    }
    return 0;
}

static int take_forecasts(const struct online_question *question, const struct aware_answer *said,
                          struct grid_answer *answer, struct fly_error *out_error)
{
    const struct aware_row *first = NULL;
    int code = 0;

    for (size_t i = 0; i < said->count && code == 0; i++) {
        const struct aware_forecast *forecast = &said->forecasts[i];
        int64_t issued_s = question->now_s;

        (void)online_time(forecast->issued, &issued_s);
        for (size_t j = 0; j < forecast->count && code == 0; j++) {
            first = first != NULL ? first : &forecast->rows[j];
            code = add_row(question, &forecast->rows[j], first, issued_s, &answer->published, out_error);
        }
    }
    return code == 0 ? check_windows(&answer->published, out_error) : code;
}

static int take_rows(const struct online_question *question, const struct aware_answer *said,
                     struct grid_answer *answer, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < said->count && code == 0; i++)
        code = add_row(question, &said->rows[i], &said->rows[0], question->now_s, &answer->actual, out_error);
    return code;
}

static int aware_parse(const struct online_question *question, json_t *body, struct arena *arena,
                       struct grid_answer *answer, struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    struct aware_answer said;
    int code = online_read_body(forecast ? &forecasts_shape : &answer_shape, body, arena, &said, out_error);

    if (code < 0)
        return code;
    return forecast ? take_forecasts(question, &said, answer, out_error)
                    : take_rows(question, &said, answer, out_error);
}

const struct grid_provider grid_provider_carbon_aware = {
    .name = "carbon-aware",
    .title = "the Carbon Aware SDK",
    .base_variable = "FLYBALL_CARBON_AWARE_URL",
    .secret = ONLINE_OPEN,
    .step_s = 300,
    .longest_s = 7 * 86400,
    .forecast_s = 24 * 3600,
    .write_path = aware_write_path,
    .parse = aware_parse,
};

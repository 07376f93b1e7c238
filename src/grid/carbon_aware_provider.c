/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Web API of the Green Software Foundation's Carbon Aware SDK, which a site runs
 * itself over a source of its choice. Only the site knows whether that is average or
 * marginal, direct or of the life cycle: figures are tagged with what the request says, else
 * with neither.
 *
 *     carbon-aware:eastus
 *
 * One thing has three spellings there. A forecast's points may be means over a window that
 * is longer than from one to the next; those would count time twice, and are refused.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"
#include "grid/online_rows.h"
#include "grid/provider.h"

static const double longest_s = 31 * 86400.0, minute_s = 60.0;

static int aware_choose(const struct grid_request *request, struct grid_kind *kind,
                        struct fly_error *out_error)
{
    return online_choose("the Carbon Aware SDK", request, request->signal, request->scope, kind, out_error);
}

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

/* One row of either spelling. */
static int add_row(const struct online_question *question, const json_t *row, int64_t issued_s,
                   struct grid_series *series, struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    struct grid_period period = {.quality = forecast ? GRID_FORECAST : GRID_MEASURED, .issued_s = issued_s};
    const json_t *duration = json_object_get(row, "duration");
    double duration_s = 0.0;
    int code = online_same(row, "location", question->place, out_error);

    if (code < 0)
        return code;
    if (!online_time(row, forecast ? "timestamp" : "time", &period.start_s))
        return online_refuse(forecast ? "timestamp" : "time", "a time as 2022-06-01T12:00:00+00:00",
                             out_error);
    if (json_is_number(duration))
        duration_s = json_number_value(duration) * minute_s;
    else if (json_is_string(duration))
        (void)iso_duration_parse(json_string_value(duration), &duration_s);
    if (!(duration_s >= 1.0) || duration_s > longest_s)
        return online_refuse("duration", "minutes, or hours as 00:05:00", out_error);
    if (!online_value(row, forecast ? "value" : "rating", GRID_G_PER_KWH, &period.value))
        return online_refuse(forecast ? "value" : "rating", "a number or null", out_error);
    period.end_s = period.start_s + (int64_t)duration_s;
    return grid_series_add(series, &period, out_error);
}

static int compare_starts(const void *left, const void *right)
{
    const struct grid_period *a = left, *b = right;

    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/* Of one forecast: its windows may not reach over the next one's start. */
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

static int parse_forecasts(const struct online_question *question, json_t *body, struct grid_answer *answer,
                           struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < json_array_size(body) && code == 0; i++) {
        const json_t *forecast = json_array_get(body, i), *rows = json_object_get(forecast, "forecastData");
        int64_t issued_s = question->now_s;

        code = online_same(forecast, "location", question->place, out_error);
        if (code == 0 && !json_is_array(rows))
            return online_refuse("forecastData", "an array", out_error);
        (void)online_time(forecast, "generatedAt", &issued_s);
        for (size_t j = 0; j < json_array_size(rows) && code == 0; j++)
            code = add_row(question, json_array_get(rows, j), issued_s, &answer->published, out_error);
    }
    return code == 0 ? check_windows(&answer->published, out_error) : code;
}

static int aware_parse(const struct online_question *question, json_t *body, struct grid_answer *answer,
                       struct fly_error *out_error)
{
    int code = 0;

    if (!json_is_array(body))
        return error_set(out_error, FLY_EDATA, "expected an array");
    if (question->query == ONLINE_FORECAST)
        return parse_forecasts(question, body, answer, out_error);
    for (size_t i = 0; i < json_array_size(body) && code == 0; i++)
        code = add_row(question, json_array_get(body, i), question->now_s, &answer->actual, out_error);
    return code;
}

const struct online_provider online_carbon_aware = {
    .name = "carbon-aware",
    .base_variable = "FLYBALL_CARBON_AWARE_URL",
    .secret = ONLINE_OPEN,
    .step_s = 300,
    .longest_s = 7 * 86400,
    .forecast_s = 24 * 3600,
    .choose = aware_choose,
    .write_path = aware_write_path,
    .parse = aware_parse,
};

static int aware_read(const struct grid_request *request, struct grid_answer *out_answer,
                      struct fly_error *out_error)
{
    return online_read(&online_carbon_aware, request, out_answer, out_error);
}

const struct grid_provider grid_provider_carbon_aware = {
    .name = "carbon-aware",
    .place = "LOCATION",
    .summary = "a Carbon Aware SDK of the site's: carbon-aware:eastus",
    .read = aware_read,
};

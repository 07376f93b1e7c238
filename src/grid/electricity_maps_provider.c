/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Electricity Maps, version 3 of its API: average intensities of zones, of the whole life
 * cycle unless direct ones are asked for. The last 24 h come with every key; other times
 * and forecasts with some. Values are estimated at first and revised later.
 *
 *     electricity-maps:DE
 *
 * Trials go through a gateway, which wants the key in a header of its own.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"
#include "grid/online_rows.h"
#include "grid/provider.h"

static const char *const scope_words[GRID_SCOPE_COUNT] = {
    [GRID_DIRECT] = "direct", [GRID_LIFE_CYCLE] = "lifecycle"};

static const struct {
    const char *word;
    int64_t step_s;
} granularities[] = {
    {"hourly", 3600},
    {"15_minutes", 900},
    {"5_minutes", 300},
    {"daily", 86400},
};

static int maps_choose(const struct grid_request *request, struct grid_kind *kind,
                       struct fly_error *out_error)
{
    enum grid_scope scope = request->scope == GRID_DIRECT ? GRID_DIRECT : GRID_LIFE_CYCLE;

    return online_choose("Electricity Maps", request, GRID_AVERAGE, scope, kind, out_error);
}

static int maps_write_path(const struct online_question *question, struct buffer *url,
                           struct fly_error *out_error)
{
    static const char *const routes[ONLINE_QUERY_COUNT] = {"history", "past-range", "forecast"};
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX];

    (void)out_error;
    buffer_printf(url, "/carbon-intensity/%s?zone=%s&emissionFactorType=%s", routes[question->query],
                  question->place, scope_words[question->scope]);
    if (question->query == ONLINE_RANGE)
        buffer_printf(url, "&start=%s&end=%s", iso_time_format(question->from_s, from),
                      iso_time_format(question->to_s, to));
    return 0;
}

/* How long a period is; where the answer does not say, an hour. */
static int find_step(const json_t *body, int64_t *out_step_s, struct fly_error *out_error)
{
    const char *word = online_text(body, "temporalGranularity");

    *out_step_s = 3600;
    if (word[0] == '\0')
        return 0;
    for (size_t i = 0; i < sizeof granularities / sizeof granularities[0]; i++) {
        if (strcmp(word, granularities[i].word) == 0) {
            *out_step_s = granularities[i].step_s;
            return 0;
        }
    }
    return online_refuse("temporalGranularity", "hourly, 15_minutes or 5_minutes", out_error);
}

/* What a row says of its kind has to be what was asked for. */
static int check_kind(const struct online_question *question, const json_t *row, struct fly_error *out_error)
{
    int code = 0;

    if (json_object_get(row, "zone") != NULL)
        code = online_same(row, "zone", question->place, out_error);
    if (code == 0 && json_object_get(row, "emissionFactorType") != NULL)
        code = online_same(row, "emissionFactorType", scope_words[question->scope], out_error);
    return code;
}

static int add_row(const struct online_question *question, const json_t *row, int64_t step_s,
                   int64_t issued_s, struct grid_answer *answer, struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    struct grid_period period = {.quality = forecast ? GRID_FORECAST
                                            : json_is_true(json_object_get(row, "isEstimated"))
                                                ? GRID_ESTIMATED
                                                : GRID_MEASURED,
                                 .issued_s = issued_s};
    int code = check_kind(question, row, out_error);

    if (code < 0)
        return code;
    if (!online_time(row, "datetime", &period.start_s))
        return online_refuse("datetime", "a time as 2024-11-30T06:00:00.000Z", out_error);
    if (!online_value(row, "carbonIntensity", GRID_G_PER_KWH, &period.value))
        return online_refuse("carbonIntensity", "a number or null", out_error);
    period.end_s = period.start_s + step_s;
    (void)online_time(row, "updatedAt", &period.issued_s);
    return grid_series_add(forecast ? &answer->published : &answer->actual, &period, out_error);
}

static int maps_parse(const struct online_question *question, json_t *body, struct grid_answer *answer,
                      struct fly_error *out_error)
{
    static const char *const names[ONLINE_QUERY_COUNT] = {"history", "data", "forecast"};
    const json_t *rows = json_object_get(body, names[question->query]);
    int64_t step_s = 0, issued_s = question->now_s;
    int code;

    if (!json_is_array(rows))
        return online_refuse(names[question->query], "an array", out_error);
    /* Without a place that it knows it may answer for where the caller seems to be. */
    code = online_same(body, "zone", question->place, out_error);
    if (code == 0)
        code = find_step(body, &step_s, out_error);
    if (code == 0)
        code = check_kind(question, body, out_error);
    (void)online_time(body, "updatedAt", &issued_s);
    for (size_t i = 0; i < json_array_size(rows) && code == 0; i++)
        code = add_row(question, json_array_get(rows, i), step_s, issued_s, answer, out_error);
    return code;
}

const struct online_provider online_electricity_maps = {
    .name = "electricity-maps",
    .base = "https://api.electricitymaps.com/v3",
    .base_variable = "FLYBALL_ELECTRICITY_MAPS_URL",
    .secret = ONLINE_KEY,
    .key_header = "auth-token",
    .gateway = "api-access.electricitymaps.com",
    .gateway_header = "X-BLOBR-KEY",
    .header_variable = "FLYBALL_ELECTRICITY_MAPS_HEADER",
    .key_variable = "FLYBALL_ELECTRICITY_MAPS_KEY",
    .key_file_variable = "FLYBALL_ELECTRICITY_MAPS_KEY_FILE",
    .step_s = 3600,
    .recent_s = 24 * 3600,
    .longest_s = 10 * 86400,
    .forecast_s = 24 * 3600,
    .choose = maps_choose,
    .write_path = maps_write_path,
    .parse = maps_parse,
};

static int maps_read(const struct grid_request *request, struct grid_answer *out_answer,
                     struct fly_error *out_error)
{
    return online_read(&online_electricity_maps, request, out_answer, out_error);
}

const struct grid_provider grid_provider_electricity_maps = {
    .name = "electricity-maps",
    .place = "ZONE",
    .summary = "Electricity Maps, with a key: electricity-maps:DE",
    .read = maps_read,
};

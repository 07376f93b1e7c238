/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Electricity Maps, version 4 of its API (version 3 has the same routes): average intensities of zones, of
 * the whole life cycle unless direct ones are asked for. Every key gives the last 24 h; only some give other
 * times and forecasts. Values are estimated at first and revised later.
 *
 *     electricity-maps:DE
 *
 * Trials go through a gateway, which needs the key in a header of its own.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"

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

static int maps_write_path(const struct online_question *question, struct buffer *url,
                           struct fly_error *out_error)
{
    static const char *const routes[ONLINE_QUERY_COUNT] = {"history", "past-range", "forecast"};
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX];

    (void)out_error;
    buffer_printf(url, "/carbon-intensity/%s?zone=%s&emissionFactorType=%s&temporalGranularity=hourly",
                  routes[question->query], question->place, scope_words[question->scope]);
    if (question->query == ONLINE_RANGE)
        buffer_printf(url, "&start=%s&end=%s", iso_time_format(question->from_s, from),
                      iso_time_format(question->to_s, to));
    return 0;
}

/* ---- what it answers ---- */

/* The kind that a row, or the whole answer, states. */
struct maps_kind {
    const char *zone, *factor;
    bool has_zone, has_factor;
    const char *updated; /* when the value was published */
};
#define KIND_ROWS(type)                                                                              \
    {SHAPE_AT_AS("zone", type, kind.zone), SHAPE_IS_TEXT(UINT32_MAX), SHAPE_IF(type, kind.has_zone), \
     .loose = true},                                                                                 \
        {SHAPE_AT_AS("emissionFactorType", type, kind.factor), SHAPE_IS_TEXT(UINT32_MAX),            \
         SHAPE_IF(type, kind.has_factor), .loose = true},                                            \
    {                                                                                                \
        SHAPE_AT_AS("updatedAt", type, kind.updated), ONLINE_TEXT                                    \
    }

struct maps_row {
    struct maps_kind kind;
    const char *start;
    double value;
    bool estimated;
};
static const struct shape_field row_rows[] = {
    KIND_ROWS(maps_row),
    {SHAPE_AT_AS("datetime", maps_row, start), ONLINE_TEXT},
    {SHAPE_AT_AS("carbonIntensity", maps_row, value), ONLINE_VALUE},
    {SHAPE_AT_AS("isEstimated", maps_row, estimated), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL, .loose = true},
};
static const struct shape row_shape = {SHAPE_OF(maps_row, row_rows)};

struct maps_answer {
    const struct maps_row *rows;
    size_t count;
    struct maps_kind kind;
    const char *granularity;
};
#define ANSWER_ROWS(name)                                                                                \
    {SHAPE_AT_AS(name, maps_answer, rows), SHAPE_IS_STRUCTS(&row_shape, UINT32_MAX, maps_answer, count), \
     .expected = "an array"},                                                                            \
        KIND_ROWS(maps_answer),                                                                          \
    {                                                                                                    \
        SHAPE_AT_AS("temporalGranularity", maps_answer, granularity), ONLINE_TEXT                        \
    }
static const struct shape_field history_rows[] = {ANSWER_ROWS("history")};
static const struct shape_field range_rows[] = {ANSWER_ROWS("data")};
static const struct shape_field forecast_rows[] = {ANSWER_ROWS("forecast")};
static const struct shape answer_shapes[ONLINE_QUERY_COUNT] = {
    [ONLINE_RECENT] = {SHAPE_OF(maps_answer, history_rows)},
    [ONLINE_RANGE] = {SHAPE_OF(maps_answer, range_rows)},
    [ONLINE_FORECAST] = {SHAPE_OF(maps_answer, forecast_rows)},
};

/* ---- what it means ---- */

/* Finds the length of a period; an hour if the answer does not state it. */
static int find_step(const char *word, int64_t *out_step_s, struct fly_error *out_error)
{
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

/* The kind that a row states must be the one that was asked for. */
static int check_kind(const struct online_question *question, const struct maps_kind *kind,
                      struct fly_error *out_error)
{
    int code = 0;

    if (kind->has_zone)
        code = online_same("zone", kind->zone, question->place, out_error);
    if (code == 0 && kind->has_factor)
        code = online_same("emissionFactorType", kind->factor, scope_words[question->scope], out_error);
    return code;
}

static int add_row(const struct online_question *question, const struct maps_row *row, int64_t step_s,
                   int64_t issued_s, struct grid_answer *answer, struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    struct grid_period period = {.quality = forecast         ? GRID_FORECAST
                                            : row->estimated ? GRID_ESTIMATED
                                                             : GRID_MEASURED,
                                 .value = online_value(row->value, GRID_G_PER_KWH),
                                 .issued_s = issued_s};
    int code = check_kind(question, &row->kind, out_error);

    if (code < 0)
        return code;
    if (!online_time(row->start, &period.start_s))
        return online_refuse("datetime", "a time as 2024-11-30T06:00:00.000Z", out_error);
    period.end_s = period.start_s + step_s;
    (void)online_time(row->kind.updated, &period.issued_s);
    return grid_series_add(forecast ? &answer->published : &answer->actual, &period, out_error);
}

static int take_answer(const struct online_question *question, const struct maps_answer *said,
                       struct grid_answer *answer, struct fly_error *out_error)
{
    int64_t step_s = 0, issued_s = question->now_s;
    /* If the service does not know the place, it may answer for where the caller seems to be. */
    int code = online_same("zone", said->kind.zone, question->place, out_error);

    if (code == 0)
        code = find_step(said->granularity, &step_s, out_error);
    if (code == 0)
        code = check_kind(question, &said->kind, out_error);
    (void)online_time(said->kind.updated, &issued_s);
    for (size_t i = 0; i < said->count && code == 0; i++)
        code = add_row(question, &said->rows[i], step_s, issued_s, answer, out_error);
    return code;
}

static int maps_parse(const struct online_question *question, json_t *body, struct arena *arena,
                      struct grid_answer *answer, struct fly_error *out_error)
{
    struct maps_answer said;
    int code = online_read_body(&answer_shapes[question->query], body, arena, &said, out_error);

    return code < 0 ? code : take_answer(question, &said, answer, out_error);
}

const struct grid_provider grid_provider_electricity_maps = {
    .name = "electricity-maps",
    .title = "Electricity Maps",
    .signal = GRID_AVERAGE,
    .usual_scope = GRID_LIFE_CYCLE,
    .base = "https://api.electricitymaps.com/v4",
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
    .write_path = maps_write_path,
    .parse = maps_parse,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WattTime, version 3 of its API: marginal intensities of regions in periods of five minutes,
 * from a model, hence estimated; average ones if these are asked for. Pounds per MWh.
 *
 *     watttime:CAISO_NORTH
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"

enum { STEP_MOST_S = 86400 };

static const char *signal_word(enum grid_signal signal)
{
    return signal == GRID_AVERAGE ? "co2_aoer" : "co2_moer";
}

static int watttime_write_path(const struct online_question *question, struct buffer *url,
                               struct fly_error *out_error)
{
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX];

    (void)out_error;
    buffer_printf(url, "/v3/%s?region=%s&signal_type=%s",
                  question->query == ONLINE_FORECAST ? "forecast" : "historical", question->place,
                  signal_word(question->signal));
    if (question->query == ONLINE_FORECAST)
        buffer_puts(url, "&horizon_hours=48");
    else
        buffer_printf(url, "&start=%s&end=%s", iso_time_format(question->from_s, from),
                      iso_time_format(question->to_s, to));
    return 0;
}

/* ---- what it answers ---- */

/* Facts about all rows. */
struct watttime_meta {
    const char *region, *signal, *units, *issued;
    uint32_t step_s;
};
static const struct shape_field meta_rows[] = {
    {SHAPE_AT(watttime_meta, region), ONLINE_TEXT},
    {SHAPE_AT_AS("signal_type", watttime_meta, signal), ONLINE_TEXT},
    {SHAPE_AT(watttime_meta, units), ONLINE_TEXT},
    {SHAPE_AT_AS("data_point_period_seconds", watttime_meta, step_s), SHAPE_IS_U32(1, STEP_MOST_S),
     .expected = "seconds, up to a day"},
    {SHAPE_AT_AS("generated_at", watttime_meta, issued), ONLINE_TEXT},
};
static const struct shape meta_shape = {SHAPE_OF(watttime_meta, meta_rows)};

struct watttime_row {
    const char *start;
    double value;
};
static const struct shape_field row_rows[] = {
    {SHAPE_AT_AS("point_time", watttime_row, start), ONLINE_TEXT},
    {SHAPE_AT(watttime_row, value), ONLINE_VALUE},
};
static const struct shape row_shape = {SHAPE_OF(watttime_row, row_rows)};

struct watttime_answer {
    const struct watttime_row *data;
    size_t count;
    struct watttime_meta meta;
};
static const struct shape_field answer_rows[] = {
    {SHAPE_AT(watttime_answer, data), SHAPE_IS_STRUCTS(&row_shape, UINT32_MAX, watttime_answer, count),
     .expected = "an array"},
    {SHAPE_AT(watttime_answer, meta), SHAPE_IS_STRUCT(&meta_shape), .need = SHAPE_OPTIONAL},
};
static const struct shape answer_shape = {SHAPE_OF(watttime_answer, answer_rows)};

/* ---- what it means ---- */

static int check_meta(const struct online_question *question, const struct watttime_meta *meta,
                      enum grid_unit *out_unit, struct fly_error *out_error)
{
    int code = online_same("region", meta->region, question->place, out_error);

    if (code == 0)
        code = online_same("signal_type", meta->signal, signal_word(question->signal), out_error);
    if (code < 0)
        return code;
    if (!grid_unit_parse(meta->units, out_unit) || grid_unit_is_price(*out_unit))
        return online_refuse("units", "'lbs_co2_per_mwh' or another unit of CO2 per energy", out_error);
    return 0;
}

static int take_answer(const struct online_question *question, const struct watttime_answer *said,
                       struct grid_answer *answer, struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    int64_t issued_s = question->now_s;
    enum grid_unit unit;
    int code = check_meta(question, &said->meta, &unit, out_error);

    /* For historical values it states when the model last made any, which revises none of these. */
    if (forecast)
        (void)online_time(said->meta.issued, &issued_s);
    for (size_t i = 0; i < said->count && code == 0; i++) {
        struct grid_period period = {.quality = forecast ? GRID_FORECAST : GRID_ESTIMATED,
                                     .value = online_value(said->data[i].value, unit),
                                     .issued_s = issued_s};

        if (!online_time(said->data[i].start, &period.start_s))
            return online_refuse("point_time", "a time as 2023-07-15T00:00:00+00:00", out_error);
        period.end_s = period.start_s + said->meta.step_s;
        code = grid_series_add(forecast ? &answer->published : &answer->actual, &period, out_error);
    }
    return code;
}

static int watttime_parse(const struct online_question *question, json_t *body, struct arena *arena,
                          struct grid_answer *answer, struct fly_error *out_error)
{
    struct watttime_answer said;
    int code = online_read_body(&answer_shape, body, arena, &said, out_error);

    return code < 0 ? code : take_answer(question, &said, answer, out_error);
}

const struct grid_provider grid_provider_watttime = {
    .name = "watttime",
    .title = "WattTime",
    .usual_signal = GRID_MARGINAL,
    .scope = GRID_DIRECT,
    .base = "https://api.watttime.org",
    .base_variable = "FLYBALL_WATTTIME_URL",
    .secret = ONLINE_LOGIN,
    .user_variable = "FLYBALL_WATTTIME_USER",
    .key_variable = "FLYBALL_WATTTIME_PASSWORD",
    .key_file_variable = "FLYBALL_WATTTIME_PASSWORD_FILE",
    .login_path = "/login",
    .step_s = 300,
    .longest_s = 30 * 86400,
    .forecast_s = 48 * 3600,
    .write_path = watttime_write_path,
    .parse = watttime_parse,
};

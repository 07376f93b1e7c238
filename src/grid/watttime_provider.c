/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WattTime, version 3 of its API: marginal intensities of regions in five minutes, from a
 * model, hence estimated; average ones where these are asked for. Pounds per MWh.
 *
 *     watttime:CAISO_NORTH
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"
#include "grid/online_rows.h"
#include "grid/provider.h"

enum { STEP_MOST_S = 86400 };

static const char *signal_word(enum grid_signal signal)
{
    return signal == GRID_AVERAGE ? "co2_aoer" : "co2_moer";
}

static int watttime_choose(const struct grid_request *request, struct grid_kind *kind,
                           struct fly_error *out_error)
{
    enum grid_signal signal = request->signal == GRID_AVERAGE ? GRID_AVERAGE : GRID_MARGINAL;

    return online_choose("WattTime", request, signal, GRID_DIRECT, kind, out_error);
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

/* What holds for all rows. */
struct meta {
    int64_t step_s, issued_s;
    enum grid_unit unit;
};

static int read_meta(const struct online_question *question, const json_t *body, struct meta *meta,
                     struct fly_error *out_error)
{
    const json_t *found = json_object_get(body, "meta");
    int code = online_same(found, "region", question->place, out_error);

    if (code == 0)
        code = online_same(found, "signal_type", signal_word(question->signal), out_error);
    if (code < 0)
        return code;
    if (!grid_unit_parse(online_text(found, "units"), &meta->unit) || grid_unit_is_price(meta->unit))
        return online_refuse("units", "'lbs_co2_per_mwh' or another unit of CO2 per energy", out_error);
    meta->step_s = json_integer_value(json_object_get(found, "data_point_period_seconds"));
    if (meta->step_s <= 0 || meta->step_s > STEP_MOST_S)
        return online_refuse("data_point_period_seconds", "seconds, up to a day", out_error);
    meta->issued_s = question->now_s;
    /* Of historical values it says when the model's last were made, which revises none of them. */
    if (question->query == ONLINE_FORECAST)
        (void)online_time(found, "generated_at", &meta->issued_s);
    return 0;
}

static int watttime_parse(const struct online_question *question, json_t *body, struct grid_answer *answer,
                          struct fly_error *out_error)
{
    bool forecast = question->query == ONLINE_FORECAST;
    const json_t *rows = json_object_get(body, "data");
    struct meta meta;
    int code;

    if (!json_is_array(rows))
        return online_refuse("data", "an array", out_error);
    code = read_meta(question, body, &meta, out_error);
    for (size_t i = 0; i < json_array_size(rows) && code == 0; i++) {
        const json_t *row = json_array_get(rows, i);
        struct grid_period period = {.quality = forecast ? GRID_FORECAST : GRID_ESTIMATED,
                                     .issued_s = meta.issued_s};

        if (!online_time(row, "point_time", &period.start_s))
            return online_refuse("point_time", "a time as 2023-07-15T00:00:00+00:00", out_error);
        if (!online_value(row, "value", meta.unit, &period.value))
            return online_refuse("value", "a number or null", out_error);
        period.end_s = period.start_s + meta.step_s;
        code = grid_series_add(forecast ? &answer->published : &answer->actual, &period, out_error);
    }
    return code;
}

const struct online_provider online_watttime = {
    .name = "watttime",
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
    .choose = watttime_choose,
    .write_path = watttime_write_path,
    .parse = watttime_parse,
};

static int watttime_read(const struct grid_request *request, struct grid_answer *out_answer,
                         struct fly_error *out_error)
{
    return online_read(&online_watttime, request, out_answer, out_error);
}

const struct grid_provider grid_provider_watttime = {
    .name = "watttime",
    .place = "REGION",
    .summary = "WattTime, with an account: watttime:CAISO_NORTH",
    .read = watttime_read,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Carbon Intensity API of Great Britain's system operator: average, of what is burnt
 * there, half-hours, forecasts for two days. Actual values are its estimates, and only
 * the whole country has any; its regions have forecasts alone.
 *
 *     gb:national    gb:13 (a region's number)    gb:RG10 (the first part of a postcode)
 *
 * Times lack their seconds, forecasts are overwritten and not kept, and answers may begin
 * with the half-hour that ends at the time asked for.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"
#include "grid/online_rows.h"
#include "grid/provider.h"

enum { POSTCODE_MOST = 4, REGION_DIGITS_MOST = 2 };

static bool is_national(const char *place)
{
    return strcmp(place, "national") == 0;
}

static bool is_region(const char *place)
{
    return strspn(place, "0123456789") == strlen(place) && strlen(place) <= REGION_DIGITS_MOST;
}

static bool is_postcode(const char *place)
{
    for (const char *at = place; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at))
            return false;
    }
    return isalpha((unsigned char)place[0]) && strlen(place) <= POSTCODE_MOST;
}

static int gb_choose(const struct grid_request *request, struct grid_kind *kind, struct fly_error *out_error)
{
    return online_choose("the GB Carbon Intensity API", request, GRID_AVERAGE, GRID_DIRECT, kind, out_error);
}

static int gb_write_path(const struct online_question *question, struct buffer *url,
                         struct fly_error *out_error)
{
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX] = "fw48h";
    const char *place = question->place;

    online_minute(question->from_s, from);
    if (question->query != ONLINE_FORECAST)
        online_minute(question->to_s + 59, to);
    if (is_national(place))
        buffer_printf(url, "/intensity/%s/%s", from, to);
    else if (is_region(place))
        buffer_printf(url, "/regional/intensity/%s/%s/regionid/%s", from, to, place);
    else if (is_postcode(place))
        buffer_printf(url, "/regional/intensity/%s/%s/postcode/%s", from, to, place);
    else
        return error_set(out_error, FLY_EUSAGE,
                         "'gb:%.40s' is no place; expected gb:national, a region as gb:13, or a postcode's "
                         "first part as gb:RG10",
                         place);
    return 0;
}

static int add_row(const struct online_question *question, const json_t *row, struct grid_answer *answer,
                   struct fly_error *out_error)
{
    struct grid_period period = {.quality = GRID_ESTIMATED, .issued_s = question->now_s};
    const json_t *intensity = json_object_get(row, "intensity");
    double forecast;
    int code = 0;

    if (!online_time(row, "from", &period.start_s) || !online_time(row, "to", &period.end_s))
        return online_refuse("from, to", "times as 2018-01-20T12:00Z", out_error);
    if (!json_is_object(intensity) || !online_value(intensity, "actual", GRID_G_PER_KWH, &period.value) ||
        !online_value(intensity, "forecast", GRID_G_PER_KWH, &forecast))
        return online_refuse("intensity", "numbers or null for 'actual' and 'forecast'", out_error);
    /* What is yet to come has no actual value, whatever it says; a region never has. */
    if (is_national(question->place) && period.start_s <= question->now_s)
        code = grid_series_add(&answer->actual, &period, out_error);
    if (code == 0 && !isnan(forecast)) {
        period.value = forecast;
        period.quality = GRID_FORECAST;
        code = grid_series_add(&answer->published, &period, out_error);
    }
    return code;
}

static int gb_parse(const struct online_question *question, json_t *body, struct grid_answer *answer,
                    struct fly_error *out_error)
{
    const json_t *data = json_object_get(body, "data");
    int code = 0;

    /* Regional rows stand in a region, and that in an array or not, depending on the route. */
    if (!is_national(question->place)) {
        data = json_is_array(data) ? json_array_get(data, 0) : data;
        data = json_object_get(data, "data");
    }
    if (!json_is_array(data))
        return online_refuse("data", "an array of half-hours", out_error);
    for (size_t i = 0; i < json_array_size(data) && code == 0; i++)
        code = add_row(question, json_array_get(data, i), answer, out_error);
    return code;
}

const struct online_provider online_gb = {
    .name = "gb",
    .base = "https://api.carbonintensity.org.uk",
    .base_variable = "FLYBALL_GB_URL",
    .secret = ONLINE_OPEN,
    .step_s = 1800,
    .longest_s = 13 * 86400,
    .forecast_s = 48 * 3600,
    .choose = gb_choose,
    .write_path = gb_write_path,
    .parse = gb_parse,
};

static int gb_read(const struct grid_request *request, struct grid_answer *out_answer,
                   struct fly_error *out_error)
{
    return online_read(&online_gb, request, out_answer, out_error);
}

const struct grid_provider grid_provider_gb = {
    .name = "gb",
    .place = "PLACE",
    .summary = "the GB Carbon Intensity API: gb:national, a region as gb:13, a postcode as gb:RG10",
    .read = gb_read,
};

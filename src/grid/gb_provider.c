/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Carbon Intensity API of Great Britain's system operator: average intensities, of what is
 * burnt there, in half-hours, with forecasts for two days. Actual values are its estimates, and
 * exist only for the whole country; regions have forecasts only.
 *
 *     gb:national    gb:13 (a region's number)    gb:RG10 (the first part of a postcode)
 *
 * Times lack their seconds, forecasts are overwritten and not kept, and answers may begin with
 * the half-hour that ends at the time asked for.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "grid/online.h"

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

/* ---- what it answers ---- */

struct gb_intensity {
    double actual, forecast;
};
static const struct shape_field intensity_rows[] = {
    {SHAPE_AT(gb_intensity, actual), ONLINE_VALUE},
    {SHAPE_AT(gb_intensity, forecast), ONLINE_VALUE},
};
static const struct shape intensity_shape = {SHAPE_OF(gb_intensity, intensity_rows)};

static const char intensities[] = "numbers or null for 'actual' and 'forecast'";

struct gb_row {
    const char *from, *to;
    struct gb_intensity intensity;
    bool has_intensity;
};
static const struct shape_field row_rows[] = {
    {SHAPE_AT(gb_row, from), ONLINE_TEXT},
    {SHAPE_AT(gb_row, to), ONLINE_TEXT},
    {SHAPE_AT(gb_row, intensity), SHAPE_IS_STRUCT(&intensity_shape), SHAPE_IF(gb_row, has_intensity),
     .expected = intensities},
};
static const struct shape row_shape = {SHAPE_OF(gb_row, row_rows)};

static const char half_hours[] = "an array of half-hours";

struct gb_region {
    const struct gb_row *data;
    size_t count;
};
static const struct shape_field region_rows[] = {
    {SHAPE_AT(gb_region, data), SHAPE_IS_STRUCTS(&row_shape, UINT32_MAX, gb_region, count),
     .expected = half_hours},
};
/* The whole country, and one region within a regional answer. */
static const struct shape region_shape = {SHAPE_OF(gb_region, region_rows)};

/* Depending on the route, the rows of a region are in an object or in an array of one. */
struct gb_regions {
    const struct gb_region *data;
    size_t count;
};
static const struct shape_field regions_rows[] = {
    {SHAPE_AT(gb_regions, data), SHAPE_IS_STRUCTS(&region_shape, UINT32_MAX, gb_regions, count),
     .or_one = true, .expected = half_hours},
};
static const struct shape regions_shape = {SHAPE_OF(gb_regions, regions_rows)};

/* ---- what it means ---- */

static int add_row(const struct online_question *question, const struct gb_row *row,
                   struct grid_answer *answer, struct fly_error *out_error)
{
    struct grid_period period = {.quality = GRID_ESTIMATED,
                                 .value = online_value(row->intensity.actual, GRID_G_PER_KWH),
                                 .issued_s = question->now_s};
    double forecast = online_value(row->intensity.forecast, GRID_G_PER_KWH);
    int code = 0;

    if (!online_time(row->from, &period.start_s) || !online_time(row->to, &period.end_s))
        return online_refuse("from, to", "times as 2018-01-20T12:00Z", out_error);
    if (!row->has_intensity)
        return online_refuse("intensity", intensities, out_error);
    /* The future has no actual value, whatever the answer says; a region never has one. */
    if (is_national(question->place) && period.start_s <= question->now_s)
        code = grid_series_add(&answer->actual, &period, out_error);
    if (code == 0 && !isnan(forecast)) {
        period.value = forecast;
        period.quality = GRID_FORECAST;
        code = grid_series_add(&answer->published, &period, out_error);
    }
    return code;
}

static int read_region(const struct online_question *question, json_t *body, struct arena *arena,
                       struct gb_region *region, struct fly_error *out_error)
{
    struct gb_regions regions;
    int code;

    if (is_national(question->place))
        return online_read_body(&region_shape, body, arena, region, out_error);
    code = online_read_body(&regions_shape, body, arena, &regions, out_error);
    if (code < 0)
        return code;
    if (regions.count == 0)
        return online_refuse("data", half_hours, out_error);
    *region = regions.data[0];
    return 0;
}

static int gb_parse(const struct online_question *question, json_t *body, struct arena *arena,
                    struct grid_answer *answer, struct fly_error *out_error)
{
    struct gb_region region = {.data = NULL};
    int code = read_region(question, body, arena, &region, out_error);

    for (size_t i = 0; code == 0 && i < region.count; i++)
        code = add_row(question, &region.data[i], answer, out_error);
    return code;
}

const struct grid_provider grid_provider_gb = {
    .name = "gb",
    .title = "the GB Carbon Intensity API",
    .signal = GRID_AVERAGE,
    .scope = GRID_DIRECT,
    .base = "https://api.carbonintensity.org.uk",
    .base_variable = "FLYBALL_GB_URL",
    .secret = ONLINE_OPEN,
    .step_s = 1800,
    .longest_s = 13 * 86400,
    .forecast_s = 48 * 3600,
    .write_path = gb_write_path,
    .parse = gb_parse,
};

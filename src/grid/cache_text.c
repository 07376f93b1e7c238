/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of the cache's files: a line with the version and the checksum of the rest, then
 * JSON:
 *
 *     flyball-carbon 1 9e3b01f2
 *     {"source":"gb https://... national average direct","queries":[[from,to,asked,refused,"why"],...],
 *      "actual":[[start,end,value,quality,issued],...],"published":[...]}
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/adler32.h"
#include "base/error.h"
#include "base/number.h"
#include "grid/cache_text.h"

enum { HEAD_MAX = 32 };

static const char head_format[] = "flyball-carbon 1 %08" PRIx32 "\n";

/* Puts the line in front of what stands there. */
static void wrap(const struct buffer *body, struct buffer *out)
{
    buffer_printf(out, head_format, adler32_of(body->data, body->length));
    buffer_append(out, body->data, body->length);
    if (body->error < 0)
        out->error = body->error;
}

/* The document behind a line that fits; NULL: there is none. */
static json_t *unwrap(const char *text, size_t length)
{
    const char *end = memchr(text, '\n', length < HEAD_MAX ? length : HEAD_MAX);
    char head[HEAD_MAX + 1];
    size_t used;

    if (end == NULL)
        return NULL;
    used = (size_t)(end - text) + 1;
    snprintf(head, sizeof head, head_format, adler32_of(text + used, length - used));
    if (strlen(head) != used || memcmp(head, text, used) != 0)
        return NULL;
    return json_loadb(text + used, length - used, JSON_REJECT_DUPLICATES, NULL);
}

static void write_series(const struct grid_series *series, const char *name, struct buffer *body)
{
    size_t first = series->count > CACHE_PERIODS_MAX ? series->count - CACHE_PERIODS_MAX : 0;
    char number[NUMBER_TEXT_MAX];

    buffer_printf(body, ",\"%s\":[", name);
    for (size_t i = first; i < series->count; i++) {
        const struct grid_period *period = &series->periods[i];

        buffer_printf(body, "%s[%" PRId64 ",%" PRId64 ",%s,%d,", i > first ? "," : "", period->start_s,
                      period->end_s, isnan(period->value) ? "null" : number_format(period->value, number),
                      (int)period->quality);
        if (period->issued_s == GRID_TIME_UNKNOWN)
            buffer_puts(body, "null]");
        else
            buffer_printf(body, "%" PRId64 "]", period->issued_s);
    }
    buffer_puts(body, "]");
}

static void write_text(const char *text, struct buffer *body)
{
    json_t *json = json_string(text);
    char *quoted = json != NULL ? json_dumps(json, JSON_ENCODE_ANY) : NULL;

    buffer_puts(body, quoted != NULL ? quoted : "\"\"");
    free(quoted);
    json_decref(json);
}

int cache_content_write(const struct cache_content *content, const char *source, struct buffer *out,
                        struct fly_error *out_error)
{
    struct buffer body;

    buffer_init(&body, CACHE_BYTES_MAX);
    buffer_puts(&body, "{\"source\":");
    write_text(source, &body);
    buffer_puts(&body, ",\"queries\":[");
    for (int i = 0; i < ONLINE_QUERY_COUNT; i++) {
        const struct ask_query *query = &content->queries[i];

        buffer_printf(&body, "%s[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", i > 0 ? "," : "",
                      query->from_s, query->to_s, query->asked_s, query->refused_until_s);
        write_text(content->reasons[i], &body);
        buffer_puts(&body, "]");
    }
    buffer_puts(&body, "]");
    write_series(&content->answer.actual, "actual", &body);
    write_series(&content->answer.published, "published", &body);
    buffer_puts(&body, "}\n");
    wrap(&body, out);
    buffer_deinit(&body);
    if (out->error == 0)
        return 0;
    return out->error == FLY_ELIMIT
               ? error_set(out_error, FLY_ELIMIT, "the cache of '%.200s' grows too large; delete it", source)
               : error_no_memory(out_error);
}

/* Within the years that a date can be written in. */
static bool take_time(const json_t *json, int64_t *out_s)
{
    const int64_t most_s = INT64_C(300000000000);
    int64_t s = json_integer_value(json);

    if (!json_is_integer(json) || s < -most_s || s > most_s)
        return false;
    *out_s = s;
    return true;
}

static bool read_period(const json_t *row, struct grid_period *period)
{
    const json_t *value = json_array_get(row, 2), *quality = json_array_get(row, 3),
                 *issued = json_array_get(row, 4);

    if (!take_time(json_array_get(row, 0), &period->start_s) ||
        !take_time(json_array_get(row, 1), &period->end_s) || period->end_s <= period->start_s ||
        !(json_is_null(value) || json_is_number(value)) || !json_is_integer(quality) ||
        json_integer_value(quality) < 0 || json_integer_value(quality) >= GRID_QUALITY_COUNT)
        return false;
    period->value = json_is_null(value) ? NAN : json_number_value(value);
    period->quality = (enum grid_quality)json_integer_value(quality);
    period->issued_s = GRID_TIME_UNKNOWN;
    /* A value has a quality that a value can have. */
    return (json_is_null(issued) || take_time(issued, &period->issued_s)) &&
           (json_is_null(value) || period->quality != GRID_UNKNOWN);
}

static bool read_series(const json_t *rows, struct grid_series *series)
{
    if (!json_is_array(rows) || json_array_size(rows) > CACHE_PERIODS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        struct grid_period period;

        if (!read_period(json_array_get(rows, i), &period) || grid_series_add(series, &period, NULL) < 0)
            return false;
    }
    if (grid_series_settle(series, NULL) < 0)
        return false;
    series->remarks = (struct grid_remarks){0};
    return true;
}

static bool read_query(const json_t *row, struct ask_query *query, char reason[CACHE_REASON_MAX])
{
    const char *text = json_string_value(json_array_get(row, 4));

    if (!take_time(json_array_get(row, 0), &query->from_s) ||
        !take_time(json_array_get(row, 1), &query->to_s) ||
        !take_time(json_array_get(row, 2), &query->asked_s) ||
        !take_time(json_array_get(row, 3), &query->refused_until_s) || text == NULL)
        return false;
    snprintf(reason, CACHE_REASON_MAX, "%s", text);
    return true;
}

static bool is_of(const json_t *document, const char *source)
{
    const char *text = json_string_value(json_object_get(document, "source"));

    return text != NULL && strcmp(text, source) == 0;
}

bool cache_content_read(const char *text, size_t length, const char *source, const struct grid_kind *kind,
                        struct cache_content *out_content)
{
    struct cache_content content;
    json_t *document = unwrap(text, length);
    bool good = is_of(document, source);

    cache_content_init(&content, kind);
    for (size_t i = 0; i < ONLINE_QUERY_COUNT && good; i++)
        good = read_query(json_array_get(json_object_get(document, "queries"), i), &content.queries[i],
                          content.reasons[i]);
    good = good && read_series(json_object_get(document, "actual"), &content.answer.actual) &&
           read_series(json_object_get(document, "published"), &content.answer.published);
    json_decref(document);
    if (good)
        *out_content = content;
    else
        cache_content_deinit(&content);
    return good;
}

void cache_service_write(const struct ask_service *service, const char *name, struct buffer *out)
{
    struct buffer body;

    buffer_init(&body, CACHE_BYTES_MAX);
    buffer_puts(&body, "{\"source\":");
    write_text(name, &body);
    buffer_printf(&body, ",\"failures\":%" PRIu32 ",\"blocked_until\":%" PRId64 "}\n", service->failures,
                  service->blocked_until_s);
    wrap(&body, out);
    buffer_deinit(&body);
}

bool cache_service_read(const char *text, size_t length, const char *name, struct ask_service *out_service)
{
    json_t *document = unwrap(text, length);
    const json_t *failures = json_object_get(document, "failures");
    struct ask_service service = {0};
    bool good = is_of(document, name) && json_is_integer(failures) && json_integer_value(failures) >= 0 &&
                json_integer_value(failures) <= UINT32_MAX &&
                take_time(json_object_get(document, "blocked_until"), &service.blocked_until_s);

    if (good) {
        service.failures = (uint32_t)json_integer_value(failures);
        *out_service = service;
    }
    json_decref(document);
    return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of the cache's files: a line with the version and the checksum of the rest, then JSON:
 *
 *     flyball-carbon 1 9e3b01f2
 *     {"source":"gb https://... national average direct","queries":[[from,to,asked,refused,"why"],...],
 *      "actual":[[start,end,value,quality,issued],...],"published":[...]}
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/adler32.h"
#include "base/error.h"
#include "grid/cache_text.h"
#include "model/grid_settle.h"
#include "shapes/shape_rows.h"

enum { HEAD_MAX = 32, ARENA_MAX = 64 << 20 };

/* Within the years of which a date can be written. */
#define TIME_MOST_S INT64_C(300000000000)
#define IS_TIME .kind = SHAPE_I64, .least = (uint64_t)-TIME_MOST_S, .most = TIME_MOST_S
#define IS_OWN_TEXT SHAPE_IS_TEXT(UINT32_MAX), .any_bytes = true

/* ---- what stands there ---- */

static const struct grid_period period_usual = {.issued_s = GRID_TIME_UNKNOWN};
static const struct shape_field period_rows[] = {
    {SHAPE_AT(grid_period, start_s), IS_TIME},
    {SHAPE_AT(grid_period, end_s), IS_TIME},
    {SHAPE_AT(grid_period, value), SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_UNKNOWN},
    {SHAPE_AT(grid_period, quality), SHAPE_IS_U32(0, GRID_QUALITY_COUNT - 1)},
    {SHAPE_AT(grid_period, issued_s), IS_TIME, .null = SHAPE_AS_DEFAULT},
};
static const struct shape period_shape = {SHAPE_OF(grid_period, period_rows), .defaults = &period_usual,
                                          .as_list = true, .longer = true};

struct query {
    struct ask_query asked;
    const char *reason; /* of a refusal */
};
static const struct shape_field query_rows[] = {
    {SHAPE_AT(query, asked.from_s), IS_TIME},  {SHAPE_AT(query, asked.to_s), IS_TIME},
    {SHAPE_AT(query, asked.asked_s), IS_TIME}, {SHAPE_AT(query, asked.refused_until_s), IS_TIME},
    {SHAPE_AT(query, reason), IS_OWN_TEXT},
};
static const struct shape query_shape = {SHAPE_OF(query, query_rows), .as_list = true, .longer = true};

struct document {
    const char *source;
    const struct query *queries;
    size_t query_count;
    const struct grid_period *actual, *published;
    size_t actual_count, published_count;
};
static const struct shape_field document_rows[] = {
    {SHAPE_AT(document, source), IS_OWN_TEXT},
    {SHAPE_AT(document, queries), SHAPE_IS_STRUCTS(&query_shape, UINT32_MAX, document, query_count)},
    {SHAPE_AT(document, actual), SHAPE_IS_STRUCTS(&period_shape, CACHE_PERIODS_MAX, document, actual_count)},
    {SHAPE_AT(document, published),
     SHAPE_IS_STRUCTS(&period_shape, CACHE_PERIODS_MAX, document, published_count)},
};
static const struct shape document_shape = {SHAPE_OF(document, document_rows)};

struct service_document {
    const char *source;
    struct ask_service service;
};
static const struct shape_field service_rows[] = {
    {SHAPE_AT(service_document, source), IS_OWN_TEXT},
    {SHAPE_AT_AS("failures", service_document, service.failures), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT_AS("blocked_until", service_document, service.blocked_until_s), IS_TIME},
};
static const struct shape service_shape = {SHAPE_OF(service_document, service_rows)};

/* ---- head and body ---- */

static const char head_format[] = "flyball-carbon 1 %08" PRIx32 "\n";

/* Puts the first line before the body. */
static void wrap(const struct buffer *body, struct buffer *out)
{
    buffer_printf(out, head_format, adler32_of(body->data, body->length));
    buffer_append(out, body->data, body->length);
    if (body->error < 0)
        out->error = body->error;
}

/* Writes the document with its first line. */
static int write_document(const struct shape *shape, const void *document, struct buffer *out,
                          struct fly_error *out_error)
{
    struct buffer body;
    int code;

    buffer_init(&body, CACHE_BYTES_MAX);
    code = shape_put(shape, document, SHAPE_SPARE, &body, out_error);
    buffer_puts(&body, "\n");
    if (code == 0)
        wrap(&body, out);
    buffer_deinit(&body);
    return code;
}

/* Reads the document after a valid first line; false if there is none. */
static bool read_document(const char *text, size_t length, const struct shape *shape, struct arena *arena,
                          void *out_document)
{
    const char *end = memchr(text, '\n', length < HEAD_MAX ? length : HEAD_MAX);
    char head[HEAD_MAX + 1];
    size_t used;

    if (end == NULL)
        return false;
    used = (size_t)(end - text) + 1;
    snprintf(head, sizeof head, head_format, adler32_of(text + used, length - used));
    if (strlen(head) != used || memcmp(head, text, used) != 0)
        return false;
    return shape_read_text(shape, text + used, length - used, SHAPE_LENIENT, arena, out_document, NULL,
                           NULL) == 0;
}

/* ---- of a source ---- */

/* Returns the newest periods. */
static const struct grid_period *newest(const struct grid_series *series, size_t *out_count)
{
    size_t first = series->count > CACHE_PERIODS_MAX ? series->count - CACHE_PERIODS_MAX : 0;

    *out_count = series->count - first;
    return series->count > 0 ? series->periods + first : NULL;
}

int cache_content_write(const struct cache_content *content, const char *source, struct buffer *out,
                        struct fly_error *out_error)
{
    struct query queries[ONLINE_QUERY_COUNT];
    struct document document = {.source = source, .queries = queries, .query_count = ONLINE_QUERY_COUNT};
    int code;

    for (int i = 0; i < ONLINE_QUERY_COUNT; i++)
        queries[i] = (struct query){content->queries[i], content->reasons[i]};
    document.actual = newest(&content->answer.actual, &document.actual_count);
    document.published = newest(&content->answer.published, &document.published_count);
    code = write_document(&document_shape, &document, out, out_error);
    if (code < 0 || out->error == 0)
        return code;
    return out->error == FLY_ELIMIT
               ? error_set(out_error, FLY_ELIMIT, "the cache of '%.200s' grows too large; delete it", source)
               : error_no_memory(out_error);
}

static bool take_series(const struct grid_period *periods, size_t count, struct grid_series *series)
{
    for (size_t i = 0; i < count; i++) {
        const struct grid_period *period = &periods[i];

        /* The quality of a period must fit its value. */
        if (period->end_s <= period->start_s || (!isnan(period->value) && period->quality == GRID_UNKNOWN) ||
            grid_series_add(series, period, NULL) < 0)
            return false;
    }
    if (grid_series_settle(series, NULL) < 0)
        return false;
    series->remarks = (struct grid_remarks){0};
    return true;
}

static bool take_content(const struct document *document, struct cache_content *content)
{
    if (document->query_count < ONLINE_QUERY_COUNT)
        return false;
    for (size_t i = 0; i < ONLINE_QUERY_COUNT; i++) {
        content->queries[i] = document->queries[i].asked;
        snprintf(content->reasons[i], CACHE_REASON_MAX, "%s", document->queries[i].reason);
    }
    return take_series(document->actual, document->actual_count, &content->answer.actual) &&
           take_series(document->published, document->published_count, &content->answer.published);
}

bool cache_content_read(const char *text, size_t length, const char *source, const struct grid_kind *kind,
                        struct cache_content *out_content)
{
    struct cache_content content;
    struct document document;
    struct arena arena;
    bool good;

    arena_init(&arena, ARENA_MAX);
    cache_content_init(&content, kind);
    good = read_document(text, length, &document_shape, &arena, &document) &&
           strcmp(document.source, source) == 0 && take_content(&document, &content);
    arena_deinit(&arena);
    if (good)
        *out_content = content;
    else
        cache_content_deinit(&content);
    return good;
}

/* ---- of a service ---- */

void cache_service_write(const struct ask_service *service, const char *name, struct buffer *out)
{
    const struct service_document document = {.source = name, .service = *service};

    (void)write_document(&service_shape, &document, out, NULL);
}

bool cache_service_read(const char *text, size_t length, const char *name, struct ask_service *out_service)
{
    struct service_document document;
    struct arena arena;
    bool good;

    arena_init(&arena, ARENA_MAX);
    good =
        read_document(text, length, &service_shape, &arena, &document) && strcmp(document.source, name) == 0;
    if (good)
        *out_service = document.service;
    arena_deinit(&arena);
    return good;
}

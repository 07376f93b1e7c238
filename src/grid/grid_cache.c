/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/grid_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/adler32.h"
#include "base/error.h"
#include "base/file/atomic_file.h"
#include "base/file/user_directory.h"
#include "base/wait.h"
#include "model/grid_series.h"
#include "shapes/shape_rows.h"

/* ---- when to ask ---- */

static const int64_t first_wait_s = 30, open_wait_s = 900, longest_wait_s = 3600;

static int64_t period_of(int64_t time_s, int64_t step_s)
{
    int64_t period = time_s / step_s;

    return time_s % step_s < 0 ? period - 1 : period;
}

/*
 * Returns the last period that was asked about. Who asked up to the moment of asking has all that
 * there was of the period of that moment, also where it had begun in that very second.
 */
static int64_t last_asked(const struct ask_query *query, int64_t step_s)
{
    return period_of(query->to_s >= query->asked_s ? query->to_s : query->to_s - 1, step_s);
}

bool ask_is_due(const struct ask_query *query, int64_t from_s, int64_t to_s, int64_t step_s, int64_t now_s)
{
    if (query->from_s >= query->to_s || from_s < query->from_s)
        return true;
    if (to_s > query->to_s && period_of(to_s - 1, step_s) > last_asked(query, step_s))
        return true;
    if (to_s <= query->asked_s - ASK_REVISED_S)
        return false;
    /* Any period other than that of the last request counts, also after a clock was turned back. */
    return period_of(now_s, step_s) != period_of(query->asked_s, step_s);
}

void ask_note_answer(struct ask_query *query, int64_t from_s, int64_t to_s, int64_t now_s)
{
    bool touches = query->from_s < query->to_s && from_s <= query->to_s && to_s >= query->from_s;
    /*
     * If a part was asked for earlier and may have been revised since, the record must not cover the
     * whole.
     */
    bool old = query->asked_s < now_s && query->to_s > query->asked_s - ASK_REVISED_S && to_s < query->to_s;

    if (!touches || old) {
        query->from_s = from_s;
        query->to_s = to_s;
    } else {
        query->from_s = from_s < query->from_s ? from_s : query->from_s;
        query->to_s = to_s > query->to_s ? to_s : query->to_s;
    }
    query->asked_s = now_s;
    query->refused_until_s = 0;
}

void ask_note_refusal(struct ask_query *query, int64_t now_s)
{
    query->refused_until_s = now_s + ASK_REFUSED_S;
}

bool ask_is_refused(const struct ask_query *query, int64_t now_s)
{
    return query->refused_until_s > now_s && query->refused_until_s - now_s <= ASK_REFUSED_S;
}

int64_t ask_wait_s(const struct ask_service *service, int64_t now_s)
{
    int64_t wait_s = service->blocked_until_s - now_s;

    return wait_s > 0 && wait_s <= ASK_RETRY_AFTER_MOST_S ? wait_s : 0;
}

void ask_set_out(struct ask_service *service, int64_t now_s)
{
    if (service->failures > 0)
        service->blocked_until_s = now_s + ASK_TRY_S;
}

void ask_went_well(struct ask_service *service)
{
    *service = (struct ask_service){0};
}

void ask_failed(struct ask_service *service, double retry_after_s, uint64_t luck, int64_t now_s)
{
    uint32_t beyond, failures = service->failures < UINT32_MAX ? ++service->failures : service->failures;
    int64_t wait_s = failures < ASK_BREAK_AT ? first_wait_s : open_wait_s;

    for (beyond = failures < ASK_BREAK_AT ? failures - 1 : failures - ASK_BREAK_AT; beyond > 0; beyond--) {
        if (wait_s >= longest_wait_s)
            break;
        wait_s *= 2;
    }
    /* So that the machines of a site do not come back all at the same time. */
    wait_s -= (int64_t)(luck % (uint64_t)(wait_s / 2 + 1));
    if (retry_after_s > (double)wait_s)
        wait_s = retry_after_s < (double)ASK_RETRY_AFTER_MOST_S ? (int64_t)retry_after_s + 1
                                                                : ASK_RETRY_AFTER_MOST_S;
    service->blocked_until_s = now_s + wait_s;
}

/* ---- content ---- */

/* Makes an empty content of that kind. */
static void cache_content_init(struct cache_content *content, const struct grid_kind *kind)
{
    *content = (struct cache_content){.answer = {.remark = ""}};
    grid_series_init(&content->answer.actual, kind, GRID_PERIODS_MAX);
    grid_series_init(&content->answer.published, kind, GRID_PERIODS_MAX);
}

void cache_content_deinit(struct cache_content *content)
{
    grid_answer_deinit(&content->answer);
}

/* Drops the oldest periods beyond the limit; to get them again, the service must be asked again. */
static void trim(struct cache_content *content, struct grid_series *series)
{
    size_t beyond = series->count > CACHE_PERIODS_MAX ? series->count - CACHE_PERIODS_MAX : 0;

    if (beyond == 0)
        return;
    series->count -= beyond;
    memmove(series->periods, series->periods + beyond, series->count * sizeof series->periods[0]);
    for (int i = 0; i < ONLINE_QUERY_COUNT; i++) {
        struct ask_query *query = &content->queries[i];

        if (query->from_s < series->periods[0].start_s)
            query->from_s = series->periods[0].start_s;
        if (query->to_s < query->from_s)
            query->to_s = query->from_s;
    }
}

int cache_content_add(struct cache_content *content, const struct grid_answer *added,
                      struct fly_error *out_error)
{
    int code = grid_series_merge(&content->answer.actual, &added->actual, out_error);

    if (code == 0)
        code = grid_series_merge(&content->answer.published, &added->published, out_error);
    if (code == 0)
        code = grid_series_settle(&content->answer.actual, out_error);
    if (code == 0)
        code = grid_series_settle(&content->answer.published, out_error);
    if (code == 0) {
        trim(content, &content->answer.actual);
        trim(content, &content->answer.published);
    }
    return code;
}

/* ---- text ---- */

/*
 * The text of the cache's files: a line with the version and the checksum of the rest, then JSON:
 *
 *     flyball-carbon 1 9e3b01f2
 *     {"source":"gb https://... national average direct","queries":[[from,to,asked,refused,"why"],...],
 *      "actual":[[start,end,value,quality,issued],...],"published":[...]}
 */

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

/* ---- files ---- */

enum { FILE_PATH_MAX = CACHE_PATH_MAX + CACHE_NAME_MAX + 16, PAUSE_NS = 20000000 };

static const double service_wait_s = 10.0;

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EWRITE,
                     "the carbon cache '%.300s' cannot be used: %s; name another directory with "
                     "FLYBALL_CARBON_CACHE",
                     path, strerror(cause));
}

static const char *given(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int find_directory(char path[CACHE_PATH_MAX], struct fly_error *out_error)
{
    const char *own = given("FLYBALL_CARBON_CACHE");

    if (own == NULL)
        return user_directory_find(USER_CACHE, "carbon", "the carbon cache", path, CACHE_PATH_MAX, out_error);
    if (snprintf(path, CACHE_PATH_MAX, "%s", own) >= CACHE_PATH_MAX)
        return error_set(out_error, FLY_ELIMIT, "the carbon cache '%.100s...' has too long a name", path);
    return 0;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

int grid_cache_open(struct grid_cache *cache, const char *provider, const char *base, const char *place,
                    const struct grid_kind *kind, struct fly_error *out_error)
{
    int cause, code = find_directory(cache->directory, out_error);

    if (code < 0)
        return code;
    cause = user_directory_make(cache->directory);
    if (cause != 0)
        return failed(cache->directory, cause, out_error);
    cache->abandon = NULL;
    snprintf(cache->service, sizeof cache->service, "%s %s", provider, base);
    snprintf(cache->source, sizeof cache->source, "%s %.300s %s %s %s", provider, base, place,
             grid_signal_name(kind->signal), grid_scope_name(kind->scope));
    snprintf(cache->service_name, sizeof cache->service_name, "%.32s-%016" PRIx64, provider,
             hash_of(cache->service));
    snprintf(cache->source_name, sizeof cache->source_name, "%.32s-%016" PRIx64, provider,
             hash_of(cache->source));
    return 0;
}

static void path_of(const struct grid_cache *cache, const char *name, const char *ending,
                    char path[FILE_PATH_MAX])
{
    snprintf(path, FILE_PATH_MAX, "%s/%s.%s", cache->directory, name, ending);
}

/* Reads a file; nothing if it cannot be read. */
static void read_file(const char *path, struct buffer *out)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char bytes[65536];
    ssize_t count;

    if (file < 0)
        return;
    while ((count = read(file, bytes, sizeof bytes)) > 0 && out->error == 0)
        buffer_append(out, bytes, (size_t)count);
    if (count < 0 || out->error < 0)
        buffer_clear(out);
    close(file);
}

static int write_file(const char *path, const struct buffer *text, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = atomic_file_open(path, &file, out_error);

    if (code < 0)
        return code;
    (void)fwrite(text->data, 1, text->length, file.stream); /* commit reports errors */
    return atomic_file_commit(&file, out_error);
}

void grid_cache_load(const struct grid_cache *cache, const struct grid_kind *kind,
                     struct cache_content *out_content)
{
    char path[FILE_PATH_MAX];
    struct buffer text;

    path_of(cache, cache->source_name, "source", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    read_file(path, &text);
    if (text.length == 0 || !cache_content_read(text.data, text.length, cache->source, kind, out_content))
        cache_content_init(out_content, kind);
    buffer_deinit(&text);
}

int grid_cache_save(const struct grid_cache *cache, const struct cache_content *content,
                    struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];
    struct buffer text;
    int code;

    path_of(cache, cache->source_name, "source", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    code = cache_content_write(content, cache->source, &text, out_error);
    if (code == 0)
        code = write_file(path, &text, out_error);
    buffer_deinit(&text);
    return code;
}

/* Uses flock(2), which is released however its holder ends. */
static int take_lock(const char *path, double wait_s, const atomic_bool *abandon, int *out_lock,
                     struct fly_error *out_error)
{
    const struct mono_time start = mono_now();
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (lock < 0)
        return failed(path, errno, out_error);
    while (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        int cause = errno;

        if (cause != EWOULDBLOCK && cause != EINTR) {
            close(lock);
            return failed(path, cause, out_error);
        }
        if (mono_elapsed_s(start, mono_now()) > wait_s || (abandon != NULL && atomic_load(abandon))) {
            close(lock);
            return error_set(out_error, FLY_EBUSY,
                             "another process has held '%.300s' for more than %g s; see what it waits for",
                             path, wait_s);
        }
        mono_sleep_s(PAUSE_NS * 1e-9);
    }
    *out_lock = lock;
    return 0;
}

int grid_cache_lock(const struct grid_cache *cache, double wait_s, int *out_lock, struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];

    path_of(cache, cache->source_name, "lock", path);
    return take_lock(path, wait_s, cache->abandon, out_lock, out_error);
}

int grid_cache_take_service(const struct grid_cache *cache, struct ask_service *out_service, int *out_lock,
                            struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];
    struct buffer text;
    int code;

    path_of(cache, cache->service_name, "turn", path);
    code = take_lock(path, service_wait_s, cache->abandon, out_lock, out_error);
    if (code < 0)
        return code;
    path_of(cache, cache->service_name, "service", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    read_file(path, &text);
    if (text.length == 0 || !cache_service_read(text.data, text.length, cache->service, out_service))
        *out_service = (struct ask_service){0};
    buffer_deinit(&text);
    return 0;
}

int grid_cache_give_service(const struct grid_cache *cache, const struct ask_service *service, int lock,
                            struct fly_error *out_error)
{
    char path[FILE_PATH_MAX];
    struct buffer text;
    int code;

    path_of(cache, cache->service_name, "service", path);
    buffer_init(&text, CACHE_BYTES_MAX);
    cache_service_write(service, cache->service, &text);
    code = text.error == 0 ? write_file(path, &text, out_error) : error_no_memory(out_error);
    buffer_deinit(&text);
    close(lock);
    return code;
}

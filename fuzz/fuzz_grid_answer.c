/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of services with the grid's figures, and texts of the cache. The first byte chooses whose reader
 * gets the rest: any bytes are refused with a reason, or give ordered periods with values in range.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "grid/grid_cache.h"
#include "grid/online.h"
#include "model/grid_series.h"

static const int64_t now_s = INT64_C(1800000000);

static const struct {
    const struct grid_provider *provider;
    const char *place;
} services[] = {
    {&grid_provider_gb, "national"},         {&grid_provider_gb, "13"},
    {&grid_provider_electricity_maps, "DE"}, {&grid_provider_watttime, "CAISO_NORTH"},
    {&grid_provider_carbon_aware, "eastus"},
};
enum { SERVICE_COUNT = sizeof services / sizeof services[0] };

static void check(struct grid_series *series)
{
    FUZZ_CHECK(grid_series_settle(series, NULL) == 0);
    for (size_t i = 0; i < series->count; i++) {
        const struct grid_period *period = &series->periods[i];

        FUZZ_CHECK(period->start_s < period->end_s);
        FUZZ_CHECK(i == 0 || series->periods[i - 1].end_s <= period->start_s);
        FUZZ_CHECK(isnan(period->value) == (period->quality == GRID_UNKNOWN));
        FUZZ_CHECK(isnan(period->value) || (period->value > 0.0 && period->value <= GRID_CARBON_MOST));
    }
}

static void read_answer(size_t which, enum online_query query, const char *text, size_t length)
{
    const struct grid_request request = {.place = services[which].place};
    struct online_question question = {.query = query,
                                       .place = services[which].place,
                                       .from_s = now_s - 86400,
                                       .to_s = now_s,
                                       .now_s = now_s};
    struct fly_error error = {.code = 0};
    struct grid_answer answer;
    struct grid_kind kind;
    int code;

    FUZZ_CHECK(online_kind(services[which].provider, &request, &kind, NULL) == 0);
    question.signal = kind.signal;
    question.scope = kind.scope;
    code = online_parse(services[which].provider, &question, &kind, text, length, &answer, &error);
    if (code == 0) {
        check(&answer.actual);
        check(&answer.published);
        grid_answer_deinit(&answer);
    } else {
        FUZZ_CHECK(error.code == code && error.text[0] != '\0');
    }
}

static void read_cache(const char *text, size_t length)
{
    const struct grid_kind kind = {.provider = "gb", .zone = "national"};
    struct cache_content content, back;
    struct ask_service service;
    struct buffer again;

    (void)cache_service_read(text, length, "gb", &service);
    if (!cache_content_read(text, length, "gb", &kind, &content))
        return;
    check(&content.answer.actual);
    check(&content.answer.published);
    buffer_init(&again, CACHE_BYTES_MAX);
    if (cache_content_write(&content, "gb", &again, NULL) == 0) {
        FUZZ_CHECK(cache_content_read(again.data, again.length, "gb", &kind, &back));
        FUZZ_CHECK(back.answer.actual.count == content.answer.actual.count);
        cache_content_deinit(&back);
    }
    buffer_deinit(&again);
    cache_content_deinit(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char reason[ONLINE_REASON_MAX];
    const char *text = (const char *)data + 1;

    if (size == 0)
        return 0;
    if (data[0] < '0' || data[0] >= '0' + SERVICE_COUNT) {
        read_cache(text, size - 1);
        return 0;
    }
    for (int query = 0; query < ONLINE_QUERY_COUNT; query++)
        read_answer((size_t)(data[0] - '0'), (enum online_query)query, text, size - 1);
    online_reason(text, size - 1, reason);
    FUZZ_CHECK(strlen(reason) < ONLINE_REASON_MAX && strchr(reason, '\n') == NULL);
    return 0;
}

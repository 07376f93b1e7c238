/* SPDX-License-Identifier: Apache-2.0 */
/* When servers of the grid's figures are asked, in virtual time, and the texts of the cache. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grid/grid_cache.h"
#include "grid/online.h"
#include "model/grid_series.h"

enum { HOUR_S = 3600, DAY_S = 86400, STEP_S = 1800 };

static const int64_t start_s = INT64_C(1800000000); /* a border of half-hours */

static void test_due(void **state)
{
    static const struct {
        const char *what;
        struct ask_query query; /* its times from `start_s` on */
        int64_t from_s, to_s, now_s;
        bool due;
    } cases[] = {
        {"nothing was asked", {0, 0, 0, 0}, -HOUR_S, 0, 0, true},
        {"the same again", {-DAY_S, 100, 100, 0}, -DAY_S, 100, 100, false},
        {"the same, later in the period", {-DAY_S, 100, 100, 0}, -DAY_S, 1799, 1799, false},
        {"asked as a period began", {-DAY_S, 0, 0, 0}, -DAY_S, 1, 1, false},
        {"asked as a period began, at its end", {-DAY_S, 0, 0, 0}, -DAY_S, 1799, 1799, false},
        {"asked as a period began, in the next", {-DAY_S, 0, 0, 0}, -DAY_S, 1801, 1801, true},
        {"a forecast made as a period began", {0, DAY_S, 0, 0}, 1, DAY_S + 1, 1, false},
        {"a forecast made as a period began, in the next", {0, DAY_S, 0, 0}, 1800, DAY_S + 1800, 1800, true},
        {"a longer forecast", {0, DAY_S, 0, 0}, 0, DAY_S + 1801, 100, true},
        {"a period has begun", {-DAY_S, 100, 100, 0}, -DAY_S, 1800, 1800, true},
        {"a part of it, in the period", {-DAY_S, 100, 100, 0}, -HOUR_S, -STEP_S, 200, false},
        {"a part of it, later", {-DAY_S, 100, 100, 0}, -HOUR_S, -STEP_S, 1900, true},
        {"an earlier start", {-DAY_S, 100, 100, 0}, -DAY_S - 1, 100, 200, true},
        {"a later end", {-DAY_S, 0, 100, 0}, -DAY_S, STEP_S + 1, 200, true},
        {"old when asked", {-20 * DAY_S, -10 * DAY_S, 0, 0}, -20 * DAY_S, -10 * DAY_S, 90 * DAY_S, false},
        {"a week old when asked", {-20 * DAY_S, 0, 0, 0}, -9 * DAY_S, -7 * DAY_S, 90 * DAY_S, false},
        {"younger when asked", {-20 * DAY_S, 0, 0, 0}, -9 * DAY_S, -7 * DAY_S + 1, 90 * DAY_S, true},
        {"the clock was turned back", {-DAY_S, 0, 0, 0}, -DAY_S, -HOUR_S, -HOUR_S, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ask_query query = cases[i].query;

        query.from_s += query.from_s == query.to_s ? 0 : start_s;
        query.to_s += query.to_s == 0 && query.from_s == 0 ? 0 : start_s;
        query.asked_s += start_s;
        if (ask_is_due(&query, start_s + cases[i].from_s, start_s + cases[i].to_s, STEP_S,
                       start_s + cases[i].now_s) != cases[i].due)
            fail_msg("%s: expected %d", cases[i].what, cases[i].due);
    }
}

static void test_answers_join(void **state)
{
    struct ask_query query = {0};

    (void)state;
    ask_note_answer(&query, start_s - DAY_S, start_s, start_s);
    ask_note_refusal(&query, start_s);
    assert_true(ask_is_refused(&query, start_s + ASK_REFUSED_S - 1));
    assert_false(ask_is_refused(&query, start_s + ASK_REFUSED_S));
    assert_false(ask_is_refused(&query, start_s - 1)); /* a clock that was turned back */
    ask_note_answer(&query, start_s - HOUR_S, start_s + HOUR_S, start_s + HOUR_S);
    assert_int_equal(query.from_s, start_s - DAY_S);
    assert_int_equal(query.to_s, start_s + HOUR_S);
    assert_false(ask_is_refused(&query, start_s));
    /* Far away: the newer counts. */
    ask_note_answer(&query, start_s - 90 * DAY_S, start_s - 80 * DAY_S, start_s + HOUR_S);
    assert_int_equal(query.from_s, start_s - 90 * DAY_S);
    assert_int_equal(query.to_s, start_s - 80 * DAY_S);
    /* What is asked anew of a part does not vouch for the rest, which may be revised too. */
    query = (struct ask_query){0};
    ask_note_answer(&query, start_s - DAY_S, start_s, start_s);
    ask_note_answer(&query, start_s - DAY_S, start_s - HOUR_S, start_s + HOUR_S);
    assert_int_equal(query.to_s, start_s - HOUR_S);
}

static void test_waits(void **state)
{
    /* Without luck, and with all of it. */
    static const int64_t waits_s[][2] = {{30, 15},   {60, 30},    {120, 60},    {240, 120},
                                         {900, 450}, {1800, 900}, {3600, 1800}, {3600, 1800}};
    struct ask_service longest = {0}, shortest = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(waits_s); i++) {
        ask_failed(&longest, 0.0, 0, start_s);
        ask_failed(&shortest, 0.0, (uint64_t)waits_s[i][0] / 2, start_s);
        assert_int_equal(ask_wait_s(&longest, start_s), waits_s[i][0]);
        assert_int_equal(ask_wait_s(&shortest, start_s), waits_s[i][1]);
        assert_int_equal(ask_wait_s(&longest, start_s + waits_s[i][0] - 1), 1);
        assert_int_equal(ask_wait_s(&longest, start_s + waits_s[i][0]), 0);
        assert_int_equal(longest.failures, i + 1);
    }
    for (uint64_t luck = 0; luck < 5000; luck += 7) {
        struct ask_service service = {.failures = 2};

        ask_failed(&service, 0.0, luck * UINT64_C(0x9E3779B97F4A7C15), start_s);
        assert_in_range(ask_wait_s(&service, start_s), 60, 120);
    }
    ask_went_well(&longest);
    assert_int_equal(ask_wait_s(&longest, start_s), 0);
    assert_int_equal(longest.failures, 0);
    longest.failures = UINT32_MAX;
    ask_failed(&longest, 0.0, 0, start_s);
    assert_int_equal(longest.failures, UINT32_MAX);
    assert_int_equal(ask_wait_s(&longest, start_s), HOUR_S);
}

static void test_retry_after(void **state)
{
    struct ask_service service = {0};

    (void)state;
    ask_failed(&service, 500.0, 0, start_s);
    assert_in_range(ask_wait_s(&service, start_s), 500, 501);
    /* Never shorter than by our own rules, never longer than a day. */
    service = (struct ask_service){0};
    ask_failed(&service, 1.0, 0, start_s);
    assert_int_equal(ask_wait_s(&service, start_s), 30);
    ask_failed(&service, 1e18, 0, start_s);
    assert_int_equal(ask_wait_s(&service, start_s), DAY_S);
    /* A clock that was turned back by more than any wait. */
    assert_int_equal(ask_wait_s(&service, start_s - 1), 0);
}

static void test_one_tries(void **state)
{
    struct ask_service service = {0};

    (void)state;
    ask_set_out(&service, start_s);
    assert_int_equal(ask_wait_s(&service, start_s), 0); /* well: all may ask */
    ask_failed(&service, 0.0, 0, start_s);
    ask_set_out(&service, start_s + 30);
    assert_int_equal(ask_wait_s(&service, start_s + 30), ASK_TRY_S);
    assert_int_equal(ask_wait_s(&service, start_s + 30 + ASK_TRY_S), 0); /* who tried has died */
}

/* A day of a program that looks every ten seconds while the service is down: how often it asks. */
static void test_a_day_of_outage(void **state)
{
    struct ask_service service = {0};
    int asked = 0;

    (void)state;
    for (int64_t now_s = start_s; now_s < start_s + DAY_S; now_s += 10) {
        if (ask_wait_s(&service, now_s) > 0)
            continue;
        ask_set_out(&service, now_s);
        asked++;
        ask_failed(&service, 0.0, 0, now_s);
    }
    assert_in_range(asked, 24, 31);
}

static const struct grid_kind kind = {
    .quantity = GRID_CARBON, .signal = GRID_AVERAGE, .scope = GRID_DIRECT, .provider = "gb", .zone = "x"};

static struct cache_content make_content(void)
{
    struct cache_content content = {.answer = {.remark = ""}};
    const struct grid_period periods[] = {
        {start_s, start_s + 1800, 123.456789012345678, GRID_ESTIMATED, start_s + 5},
        {start_s + 1800, start_s + 3600, NAN, GRID_UNKNOWN, GRID_TIME_UNKNOWN},
        {start_s + 3600, start_s + 5400, 0.1, GRID_MEASURED, GRID_TIME_UNKNOWN},
    };

    grid_series_init(&content.answer.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&content.answer.published, &kind, GRID_PERIODS_MAX);
    for (size_t i = 0; i < COUNT(periods); i++)
        assert_int_equal(grid_series_add(&content.answer.actual, &periods[i], NULL), 0);
    assert_int_equal(grid_series_settle(&content.answer.actual, NULL), 0);
    assert_int_equal(grid_series_settle(&content.answer.published, NULL), 0);
    content.queries[ONLINE_RANGE] = (struct ask_query){start_s, start_s + 5400, start_s + 6000, 0};
    content.queries[ONLINE_FORECAST].refused_until_s = start_s + 7;
    snprintf(content.reasons[ONLINE_FORECAST], CACHE_REASON_MAX, "it said \"no\"\n");
    return content;
}

static void test_text_and_back(void **state)
{
    struct cache_content content = make_content(), back;
    struct buffer text;

    (void)state;
    buffer_init(&text, CACHE_BYTES_MAX);
    assert_int_equal(cache_content_write(&content, "gb x", &text, NULL), 0);
    assert_true(cache_content_read(text.data, text.length, "gb x", &kind, &back));
    assert_int_equal(back.answer.actual.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct grid_period *a = &content.answer.actual.periods[i], *b = &back.answer.actual.periods[i];

        assert_int_equal(a->start_s, b->start_s);
        assert_int_equal(a->end_s, b->end_s);
        assert_int_equal(a->issued_s, b->issued_s);
        assert_int_equal(a->quality, b->quality);
        assert_true(a->value == b->value || (isnan(a->value) && isnan(b->value)));
    }
    assert_memory_equal(back.queries, content.queries, sizeof content.queries);
    assert_string_equal(back.reasons[ONLINE_FORECAST], "it said \"no\"\n");
    cache_content_deinit(&back);
    /* Another source's, cut at every length, and with any byte changed. */
    assert_false(cache_content_read(text.data, text.length, "gb y", &kind, &back));
    for (size_t i = 0; i < text.length; i++) {
        assert_false(cache_content_read(text.data, i, "gb x", &kind, &back));
        text.data[i] ^= 1;
        assert_false(cache_content_read(text.data, text.length, "gb x", &kind, &back));
        text.data[i] ^= 1;
    }
    buffer_deinit(&text);
    cache_content_deinit(&content);
}

static void test_service_and_back(void **state)
{
    struct ask_service service = {.failures = 7, .blocked_until_s = start_s}, back = {0};
    struct buffer text;

    (void)state;
    buffer_init(&text, CACHE_BYTES_MAX);
    cache_service_write(&service, "gb http://x", &text);
    assert_int_equal(text.error, 0);
    assert_true(cache_service_read(text.data, text.length, "gb http://x", &back));
    assert_int_equal(back.failures, 7);
    assert_int_equal(back.blocked_until_s, start_s);
    assert_false(cache_service_read(text.data, text.length, "gb http://y", &back));
    assert_false(cache_service_read(text.data, text.length - 1, "gb http://x", &back));
    buffer_deinit(&text);
}

/* A revision replaces what it revises; a null takes nothing away. */
static void test_revisions(void **state)
{
    struct cache_content content = make_content();
    struct grid_answer added = {.remark = ""};
    const struct grid_period periods[] = {
        {start_s, start_s + 1800, 200.0, GRID_MEASURED, start_s + 6},
        {start_s + 3600, start_s + 5400, NAN, GRID_UNKNOWN, start_s + 6},
    };
    struct grid_kind other = kind;

    (void)state;
    grid_series_init(&added.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&added.published, &kind, GRID_PERIODS_MAX);
    for (size_t i = 0; i < COUNT(periods); i++)
        assert_int_equal(grid_series_add(&added.actual, &periods[i], NULL), 0);
    assert_int_equal(cache_content_add(&content, &added, NULL), 0);
    assert_int_equal(content.answer.actual.count, 3);
    assert_true(content.answer.actual.periods[0].value == 200.0);
    assert_int_equal(content.answer.actual.periods[0].quality, GRID_MEASURED);
    assert_true(content.answer.actual.periods[2].value == 0.1);
    other.signal = GRID_MARGINAL;
    added.actual.kind = other;
    assert_int_equal(cache_content_add(&content, &added, NULL), FLY_ECONFLICT);
    grid_answer_deinit(&added);
    cache_content_deinit(&content);
}

/* A service's gateway for trials wants the key in another header; whoever asks may name one. */
static void test_headers_of_keys(void **state)
{
    static const struct {
        const char *base, *header, *expected;
    } cases[] = {
        {NULL, NULL, "auth-token"},
        {"https://proxy.example/v3", NULL, "auth-token"},
        {"https://api-access.electricitymaps.com", NULL, "X-BLOBR-KEY"},
        {"https://api-access.electricitymaps.com/2w97h07r/", NULL, "X-BLOBR-KEY"},
        {"https://API-access.electricitymaps.com:443/2w97h07r", NULL, "X-BLOBR-KEY"},
        {"https://api-access.electricitymaps.com.example/2w97h07r", NULL, "auth-token"},
        {"https://proxy.example/api-access.electricitymaps.com", NULL, "auth-token"},
        {"https://api-access.electricitymaps.com/free-tier", "auth-token", "auth-token"},
        {"https://proxy.example/v3", "X-Site_Key", "X-Site_Key"},
        {"https://proxy.example/v3", "X-Key: 1", NULL},
        {"https://proxy.example/v3", "Kéy", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const values[] = {cases[i].base, cases[i].header};
        const char *const variables[] = {grid_provider_electricity_maps.base_variable,
                                         grid_provider_electricity_maps.header_variable};
        struct online_account account;

        for (size_t v = 0; v < COUNT(values); v++) {
            if (values[v] != NULL)
                assert_int_equal(setenv(variables[v], values[v], 1), 0);
            else
                assert_int_equal(unsetenv(variables[v]), 0);
        }
        if (cases[i].expected == NULL) {
            assert_int_equal(online_account_find(&grid_provider_electricity_maps, &account, NULL),
                             FLY_ECONFIG);
            continue;
        }
        assert_int_equal(online_account_find(&grid_provider_electricity_maps, &account, NULL), 0);
        assert_string_equal(account.key_header, cases[i].expected);
    }
    assert_int_equal(online_account_find(&grid_provider_gb, &(struct online_account){.base = ""}, NULL), 0);
}

/* Only so many periods are kept, and what was dropped has to be asked for again. */
static void test_bounded(void **state)
{
    struct cache_content content = {.answer = {.remark = ""}}, back;
    struct grid_answer added = {.remark = ""};
    struct buffer text;

    (void)state;
    grid_series_init(&content.answer.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&content.answer.published, &kind, GRID_PERIODS_MAX);
    grid_series_init(&added.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&added.published, &kind, GRID_PERIODS_MAX);
    for (int i = 0; i < CACHE_PERIODS_MAX + 10; i++) {
        const struct grid_period period = {start_s + i, start_s + i + 1, 1.0, GRID_MEASURED, start_s};

        assert_int_equal(grid_series_add(&added.actual, &period, NULL), 0);
    }
    ask_note_answer(&content.queries[ONLINE_RANGE], start_s, start_s + DAY_S, start_s + DAY_S);
    assert_int_equal(cache_content_add(&content, &added, NULL), 0);
    assert_int_equal(content.answer.actual.count, CACHE_PERIODS_MAX);
    assert_int_equal(content.answer.actual.periods[0].start_s, start_s + 10);
    assert_int_equal(content.queries[ONLINE_RANGE].from_s, start_s + 10);
    buffer_init(&text, CACHE_BYTES_MAX);
    assert_int_equal(cache_content_write(&content, "gb x", &text, NULL), 0);
    assert_true(cache_content_read(text.data, text.length, "gb x", &kind, &back));
    assert_int_equal(back.answer.actual.count, CACHE_PERIODS_MAX);
    buffer_deinit(&text);
    cache_content_deinit(&back);
    grid_answer_deinit(&added);
    cache_content_deinit(&content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due),           cmocka_unit_test(test_answers_join),
        cmocka_unit_test(test_waits),         cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_one_tries),     cmocka_unit_test(test_a_day_of_outage),
        cmocka_unit_test(test_text_and_back), cmocka_unit_test(test_service_and_back),
        cmocka_unit_test(test_revisions),     cmocka_unit_test(test_headers_of_keys),
        cmocka_unit_test(test_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

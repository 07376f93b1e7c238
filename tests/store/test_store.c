/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of store.h, over whichever back end the fixture opens. */
#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct store_query everything;
static struct kept kept;

static int ignore_job(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)state, (void)job, (void)out_error;
    return 0;
}

static void test_missing_job(void **state)
{
    const char *job = store_fixture_job("missing");
    struct store *store = store_fixture_open();
    struct store_change *change = NULL;
    struct fly_error error = {0};
    struct buffer bytes;
    uint64_t number = 7;

    (void)state;
    buffer_init(&bytes, 100);
    check_refused(store_find_job(store, job, ignore_job, NULL, &error), FLY_ENOTFOUND, &error, job);
    check_refused(store_read(store, job, &everything, store_fixture_keep, &kept, &error), FLY_ENOTFOUND,
                  &error, job);
    check_refused(store_get_snapshot(store, job, "1", &number, &bytes, &error), FLY_ENOTFOUND, &error, job);
    check_refused(store_change_begin(store, job, STORE_EXISTING_JOB, &change, &error), FLY_ENOTFOUND, &error,
                  job);
    assert_null(change);
    assert_int_equal(number, 7);
    store_close(store);
}

static void test_events_come_back(void **state)
{
    static const struct store_event events[] = {
        {.kind = "registered", .key = "", .body = "{\"name\": \"Zi\xC3\xA4hlen \xF0\x9F\x94\xA5\"}"},
        {.kind = "proposed", .trial = 1, .key = "p/1", .body = "'; DROP TABLE job; --\n\t\\ \x01"},
        {.kind = "ended", .trial = INT64_MAX, .key = "e/1", .body = "", .time_us = 1234567890123456},
    };
    const char *job = store_fixture_job("J'ob \"\xC3\x9C\" %s");
    struct store *store = store_fixture_open(), *other;
    struct store_change *change = store_fixture_change(store, job);
    int64_t now_us = store_change_now_us(change);
    struct fly_error error = {0};

    (void)state;
    assert_int_equal(store_change_head(change), 0);
    assert_true(llabs(now_us - (int64_t)time(NULL) * 1000000) < 60000000);
    for (size_t i = 0; i < COUNT(events); i++) {
        uint64_t number = 0;

        check_done(store_change_append(change, &events[i], &number, &error), &error);
        assert_int_equal(number, i + 1);
        assert_int_equal(store_change_head(change), i + 1);
    }
    check_done(store_change_commit(change, &error), &error);
    other = store_fixture_open();
    store_fixture_read(other, job, &everything, &kept);
    assert_int_equal(kept.count, COUNT(events));
    for (size_t i = 0; i < COUNT(events); i++) {
        assert_int_equal(kept.events[i].number, i + 1);
        assert_int_equal(kept.events[i].trial, events[i].trial);
        assert_int_equal(kept.events[i].time_us, events[i].time_us == 0 ? now_us : events[i].time_us);
        assert_string_equal(kept.events[i].kind, events[i].kind);
        assert_string_equal(kept.events[i].key, events[i].key);
        assert_string_equal(kept.events[i].body, events[i].body);
    }
    store_close(other);
    store_close(store);
}

static void test_largest_body(void **state)
{
    const char *job = store_fixture_job("large");
    struct store *store = store_fixture_open();
    struct store_change *change = store_fixture_change(store, job);
    char *body = malloc(STORE_BODY_MAX + 2);
    struct store_event event = {.kind = "large", .key = "", .body = body};
    struct fly_error error = {0};

    (void)state;
    memset(body, 'x', STORE_BODY_MAX + 1);
    body[STORE_BODY_MAX + 1] = '\0';
    check_refused(store_change_append(change, &event, NULL, &error), FLY_ELIMIT, &error, "1048577 bytes");
    body[STORE_BODY_MAX] = '\0';
    check_done(store_change_append(change, &event, NULL, &error), &error);
    check_done(store_change_commit(change, &error), &error);
    store_fixture_read(store, job, &everything, &kept);
    assert_int_equal(kept.events[0].body_bytes, STORE_BODY_MAX);
    free(body);
    store_close(store);
}

static bool is_asked_for(const struct kept_event *event, const struct store_query *query)
{
    return event->number > query->after && (query->trial == 0 || event->trial == query->trial) &&
           (query->key == NULL || strcmp(event->key, query->key) == 0);
}

/* What a query finds in a list that is known to be right. */
static void check_query(struct store *store, struct store_change *change, const char *job,
                        const struct store_query *query, const struct kept *all)
{
    static struct kept found;
    struct fly_error error = {0};
    size_t next = 0;

    memset(&found, 0, sizeof found);
    check_done(change != NULL ? store_change_read(change, query, store_fixture_keep, &found, &error)
                              : store_read(store, job, query, store_fixture_keep, &found, &error),
               &error);
    for (size_t i = 0; i < all->count; i++) {
        if (!is_asked_for(&all->events[i], query) || (query->limit != 0 && next == query->limit))
            continue;
        assert_true(next < found.count);
        assert_int_equal(found.events[next].number, all->events[i].number);
        assert_string_equal(found.events[next].key, all->events[i].key);
        next++;
    }
    assert_int_equal(found.count, next);
}

static void test_queries(void **state)
{
    enum { EVENTS = 300, QUERIES = 150 };
    const char *job = store_fixture_job("queries"), *other = store_fixture_job("queries of another");
    struct store *store = store_fixture_open();
    struct store_change *change;
    struct fly_error error = {0};
    static struct kept all;
    uint64_t random = 5;
    char key[32] = "";

    (void)state;
    change = store_fixture_change(store, other);
    for (int i = 1; i <= EVENTS; i++) {
        snprintf(key, sizeof key, "key %d", i);
        store_fixture_append(change, "noise", (uint64_t)i, key, "{}");
    }
    check_done(store_change_commit(change, &error), &error);
    change = store_fixture_change(store, job);
    memset(&all, 0, sizeof all);
    for (int i = 1; i <= EVENTS; i++) {
        struct kept_event *event = &all.events[all.count++];

        event->trial = test_below(&random, 20);
        if (test_below(&random, 3) > 0)
            snprintf(event->key, sizeof event->key, "key %d", i);
        event->number = store_fixture_append(change, "made", event->trial, event->key, "{}");
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < QUERIES; i++) {
            struct store_query query = {.after =
                                            test_below(&random, 2) ? test_below(&random, EVENTS + 10) : 0,
                                        .trial = test_below(&random, 2) ? test_below(&random, 22) : 0,
                                        .limit = test_below(&random, 2) ? test_below(&random, 9) : 0};

            snprintf(key, sizeof key, "key %d", (int)test_below(&random, EVENTS + 3));
            query.key = test_below(&random, 4) == 0 ? key : NULL;
            check_query(store, change, job, &query, &all);
        }
        check_query(store, change, job, &(struct store_query){.after = UINT64_MAX}, &all);
        check_query(store, change, job, &(struct store_query){.limit = UINT64_MAX}, &all);
        if (change != NULL)
            check_done(store_change_commit(change, &error), &error);
        change = NULL;
    }
    store_close(store);
}

static void test_keys(void **state)
{
    const char *job = store_fixture_job("keys"), *other = store_fixture_job("keys of another");
    const struct store_event again = {.kind = "made", .key = "report 1", .body = "{}"};
    struct store *store = store_fixture_open();
    struct store_change *change;
    struct fly_error error = {0};

    (void)state;
    store_fixture_add(store, job, 0, "report 1");
    store_fixture_add(store, other, 0, "report 1");
    change = store_fixture_change(store, job);
    check_refused(store_change_append(change, &again, NULL, &error), FLY_ESTATE, &error, "report 1");
    assert_int_equal(store_change_head(change), 1);
    /* The change goes on, and a key within it counts as well. */
    assert_int_equal(store_fixture_append(change, "made", 0, "report 2", "{}"), 2);
    check_refused(store_change_append(change,
                                      &(struct store_event){.kind = "made", .key = "report 2", .body = "{}"},
                                      NULL, &error),
                  FLY_ESTATE, &error, "report 2");
    assert_int_equal(store_fixture_append(change, "made", 0, "", "{}"), 3);
    assert_int_equal(store_fixture_append(change, "made", 0, "", "{}"), 4);
    check_done(store_change_commit(change, &error), &error);
    assert_int_equal(store_fixture_count(store, job), 4);
    assert_int_equal(store_fixture_count(store, other), 1);
    store_close(store);
}

static void test_rolled_back(void **state)
{
    const char *job = store_fixture_job("rolled back"), *never = store_fixture_job("never");
    struct store *store = store_fixture_open();
    struct store_change *change;
    struct fly_error error = {0};

    (void)state;
    store_fixture_add(store, job, 1, "kept");
    change = store_fixture_change(store, job);
    store_fixture_append(change, "made", 2, "lost", "{}");
    store_change_rollback(change);
    change = store_fixture_change(store, never);
    store_fixture_append(change, "made", 2, "lost", "{}");
    store_change_rollback(change);
    /* Without an event there is no job. */
    check_done(store_change_commit(store_fixture_change(store, never), &error), &error);
    store_fixture_append(store_fixture_change(store, never), "made", 1, "", "{}");
    store_close(store);
    store = store_fixture_open();
    assert_int_equal(store_fixture_count(store, job), 1);
    assert_int_equal(store_fixture_count(store, never), 0);
    assert_int_equal(store_fixture_add(store, job, 2, "lost"), 2);
    store_change_rollback(NULL);
    store_close(store);
    store_close(NULL);
}

static void test_others_see_committed_events_only(void **state)
{
    const char *job = store_fixture_job("seen"), *fresh = store_fixture_job("seen fresh");
    const struct store_options hasty = {.wait_s = 0.05};
    struct store *store = store_fixture_open(), *other = store_fixture_open_with(&hasty);
    struct store_change *change, *second = NULL;
    struct fly_error error = {0};

    (void)state;
    store_fixture_add(store, job, 1, "");
    change = store_fixture_change(store, job);
    store_fixture_append(change, "made", 2, "", "{}");
    assert_int_equal(store_fixture_count(other, job), 1);
    store_fixture_read(other, job, &everything, &kept);
    assert_int_equal(kept.count, 1);
    check_refused(store_change_begin(other, job, STORE_MAKE_JOB, &second, &error), FLY_EBUSY, &error,
                  store_shown(other));
    assert_null(second);
    check_done(store_change_commit(change, &error), &error);
    store_fixture_read(other, job, &everything, &kept);
    assert_int_equal(kept.count, 2);
    change = store_fixture_change(store, fresh);
    store_fixture_append(change, "made", 2, "", "{}");
    assert_int_equal(store_fixture_count(other, fresh), 0);
    check_refused(store_change_begin(other, fresh, STORE_MAKE_JOB, &second, &error), FLY_EBUSY, &error, NULL);
    store_change_rollback(change);
    assert_int_equal(store_fixture_add(other, fresh, 1, ""), 1);
    store_close(other);
    store_close(store);
}

/* One change in a group: begun, an event, and its end. */
static uint64_t add_part(struct store *store, const char *job, const char *key, bool keep)
{
    struct store_change *change = NULL;
    struct fly_error error = {0};
    uint64_t number;

    check_done(store_change_begin(store, job, STORE_EXISTING_JOB, &change, &error), &error);
    number = store_fixture_append(change, "made", 7, key, "{\"a\": \"it's a \\\\ and a \u00e9\"}");
    if (keep)
        check_done(store_change_commit(change, &error), &error);
    else
        store_change_rollback(change);
    return number;
}

static void test_groups(void **state)
{
    const char *job = store_fixture_job("grouped"), *second = store_fixture_job("grouped 'too\\'");
    const char *const jobs[] = {job, second, job};
    static const char *const odd_keys[] = {"NULL", "{a,b}", "\"", "\\", "'", "\\\"'\\", " a b ", "$1", ""};
    const struct store_query by_key = {.key = "b"}, of_trial = {.trial = 7}, one = {.after = 1, .limit = 1};
    struct store *store = store_fixture_open(), *other = store_fixture_open();
    struct store_change *change = NULL;
    struct fly_error error = {0};

    (void)state;
    store_fixture_add(store, job, 1, "");
    store_fixture_add(store, second, 1, "");
    check_done(store_group_begin(store, jobs, COUNT(jobs), &error), &error);
    assert_int_equal(add_part(store, job, "a", true), 2);
    assert_int_equal(add_part(store, job, "gone", false), 3);
    assert_int_equal(add_part(store, second, "a", true), 2);
    for (size_t i = 0; i < COUNT(odd_keys); i++)
        assert_int_equal(add_part(store, second, odd_keys[i], true), 3 + i);
    assert_int_equal(add_part(store, job, "b", true), 3);
    /* A change sees those before it, others see none. */
    check_done(store_change_begin(store, job, STORE_EXISTING_JOB, &change, &error), &error);
    assert_int_equal(store_change_head(change), 3);
    kept = (struct kept){.count = 0};
    check_done(store_change_read(change, &by_key, store_fixture_keep, &kept, &error), &error);
    assert_int_equal(kept.count, 1);
    assert_int_equal(kept.events[0].number, 3);
    check_done(store_change_read(change, &of_trial, store_fixture_keep, &kept, &error), &error);
    check_done(store_change_read(change, &one, store_fixture_keep, &kept, &error), &error);
    check_done(store_change_read(change, &everything, store_fixture_keep, &kept, &error), &error);
    assert_int_equal(kept.count, 1 + 2 + 1 + 3);
    assert_string_equal(kept.events[1].key, "a");
    assert_int_equal(kept.events[3].number, 2);
    check_done(store_change_commit(change, &error), &error);
    assert_int_equal(store_fixture_count(other, job), 1);
    check_refused(store_group_begin(store, jobs, COUNT(jobs), &error), FLY_ESTATE, &error, "a group is open");
    check_done(store_group_end(store, &error), &error);
    check_refused(store_group_end(store, &error), FLY_ESTATE, &error, "no group is open");
    store_fixture_read(other, job, &everything, &kept);
    assert_int_equal(kept.count, 3);
    assert_string_equal(kept.events[2].key, "b");
    assert_string_equal(kept.events[2].body, "{\"a\": \"it's a \\\\ and a \u00e9\"}");
    store_fixture_read(other, second, &everything, &kept);
    assert_int_equal(kept.count, 2 + COUNT(odd_keys));
    for (size_t i = 0; i < COUNT(odd_keys); i++)
        assert_string_equal(kept.events[2 + i].key, odd_keys[i]);
    /* One without changes, and one that its handle's end undoes. */
    check_done(store_group_begin(store, jobs, COUNT(jobs), &error), &error);
    check_done(store_group_end(store, &error), &error);
    check_done(store_group_begin(store, jobs, COUNT(jobs), &error), &error);
    add_part(store, job, "unended", true);
    store_close(store);
    assert_int_equal(store_fixture_add(other, job, 1, ""), 4);
    store_close(other);
}

static void check_snapshot(struct store *store, const char *job, const char *version, uint64_t number,
                           const char *text)
{
    struct fly_error error = {0};
    struct buffer bytes;
    uint64_t found = 99;

    buffer_init(&bytes, 1 << 20);
    check_done(store_get_snapshot(store, job, version, &found, &bytes, &error), &error);
    assert_int_equal(found, number);
    assert_int_equal(bytes.length, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.length);
    buffer_deinit(&bytes);
}

static void test_snapshots(void **state)
{
    static const char bytes[] = {0, 1, (char)0xFF, 0, 'x'};
    const char *job = store_fixture_job("snapshots");
    struct store *store = store_fixture_open(), *other = store_fixture_open();
    struct store_change *change;
    struct fly_error error = {0};
    struct buffer found;
    uint64_t number = 0;

    (void)state;
    store_fixture_add(store, job, 1, "");
    check_snapshot(store, job, "1", 0, "");
    change = store_fixture_change(store, job);
    check_refused(store_change_put_snapshot(change, "1", 0, "x", 1, &error), FLY_EUSAGE, &error, job);
    check_refused(store_change_put_snapshot(change, "1", 2, "x", 1, &error), FLY_EUSAGE, &error, job);
    check_refused(store_change_put_snapshot(change, "", 1, "x", 1, &error), FLY_EUSAGE, &error, "version");
    store_fixture_append(change, "made", 1, "", "{}");
    check_done(store_change_put_snapshot(change, "1", 2, "first", 5, &error), &error);
    check_done(store_change_put_snapshot(change, "2", 1, "", 0, &error), &error);
    buffer_init(&found, 100);
    check_done(store_change_get_snapshot(change, "1", &number, &found, &error), &error);
    assert_int_equal(number, 2);
    assert_string_equal(found.data, "first");
    buffer_deinit(&found);
    check_snapshot(other, job, "1", 0, "");
    check_done(store_change_commit(change, &error), &error);
    check_snapshot(other, job, "1", 2, "first");
    check_snapshot(other, job, "2", 1, "");
    check_snapshot(other, job, "3", 0, "");
    change = store_fixture_change(store, job);
    check_done(store_change_put_snapshot(change, "1", 1, bytes, sizeof bytes, &error), &error);
    check_done(store_change_commit(change, &error), &error);
    buffer_init(&found, 100);
    check_done(store_get_snapshot(other, job, "1", &number, &found, &error), &error);
    assert_int_equal(found.length, sizeof bytes);
    assert_memory_equal(found.data, bytes, sizeof bytes);
    buffer_deinit(&found);
    buffer_init(&found, 2);
    check_refused(store_get_snapshot(other, job, "1", &number, &found, &error), FLY_ELIMIT, &error, NULL);
    buffer_deinit(&found);
    store_close(other);
    store_close(store);
}

static int take_job(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)out_error;
    *(struct store_job *)state = *job;
    return 0;
}

static void test_deleted(void **state)
{
    const char *job = store_fixture_job("deleted"), *stays = store_fixture_job("stays");
    struct store *store = store_fixture_open();
    struct store_change *change;
    struct fly_error error = {0};
    struct store_job before, after;

    (void)state;
    store_fixture_add(store, job, 1, "key");
    store_fixture_add(store, stays, 1, "key");
    check_done(store_find_job(store, job, take_job, &before, &error), &error);
    change = store_fixture_change(store, job);
    assert_int_equal(store_change_job_id(change), before.id);
    check_done(store_change_put_snapshot(change, "1", 1, "x", 1, &error), &error);
    check_done(store_change_delete_job(change, &error), &error);
    check_refused(store_change_append(change, &(struct store_event){.kind = "made", .key = "", .body = "{}"},
                                      NULL, &error),
                  FLY_ESTATE, &error, "has deleted it");
    store_change_rollback(change);
    assert_int_equal(store_fixture_count(store, job), 1);
    change = store_fixture_change(store, job);
    check_done(store_change_delete_job(change, &error), &error);
    check_done(store_change_commit(change, &error), &error);
    assert_int_equal(store_fixture_count(store, job), 0);
    assert_int_equal(store_fixture_add(store, job, 1, "key"), 1);
    check_done(store_find_job(store, job, take_job, &after, &error), &error);
    assert_true(after.id > before.id);
    check_snapshot(store, job, "1", 0, "");
    assert_int_equal(store_fixture_count(store, stays), 1);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_job),
        cmocka_unit_test(test_events_come_back),
        cmocka_unit_test(test_largest_body),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_rolled_back),
        cmocka_unit_test(test_others_see_committed_events_only),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_deleted),
    };

    return cmocka_run_group_tests_name("store", tests, store_fixture_begin, store_fixture_end);
}

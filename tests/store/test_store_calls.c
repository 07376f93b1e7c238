/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of store.h where calls meet: visitors, refusals, states, clocks, fork. */
#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct store_query everything;
static struct kept kept;

static int ignore_job(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)state, (void)job, (void)out_error;
    return 0;
}

static int take_job(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)out_error;
    *(struct store_job *)state = *job;
    return 0;
}

static int open_again(void *state, const struct store_event *event, struct fly_error *out_error)
{
    (void)event;
    return store_read(state, "any", &everything, store_fixture_keep, &kept, out_error);
}

static void test_visitors(void **state)
{
    static const struct {
        size_t stop_after;
        int stop_code, expected;
        size_t seen;
    } cases[] = {{0, 0, 0, 3}, {2, 1, 0, 2}, {1, FLY_EPERM, FLY_EPERM, 1}, {3, FLY_EDATA, FLY_EDATA, 3}};
    const char *job = store_fixture_job("visited");
    struct store *store = store_fixture_open();
    struct store_change *change;
    struct fly_error error = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        store_fixture_add(store, job, 0, "");
    change = store_fixture_change(store, job);
    for (size_t i = 0; i < COUNT(cases); i++) {
        memset(&kept, 0, sizeof kept);
        kept.stop_after = cases[i].stop_after;
        kept.stop_code = cases[i].stop_code;
        assert_int_equal(store_change_read(change, &everything, store_fixture_keep, &kept, &error),
                         cases[i].expected);
        assert_int_equal(kept.count, cases[i].seen);
    }
    /* What the visitor refused is no fault of the change's. */
    store_fixture_append(change, "made", 0, "", "{}");
    check_done(store_change_commit(change, &error), &error);
    check_refused(store_read(store, job, &everything, open_again, store, &error), FLY_ESTATE, &error,
                  "being read");
    store_close(store);
}

static void test_refused_arguments(void **state)
{
    static char long_key[STORE_KEY_MAX + 2], long_name[STORE_JOB_MAX + 2], long_kind[STORE_KIND_MAX + 2];
    static const struct {
        struct store_event event;
        int code;
        const char *part;
    } cases[] = {
        {{.kind = "", .key = "", .body = ""}, FLY_EUSAGE, "kind"},
        {{.kind = NULL, .key = "", .body = ""}, FLY_EUSAGE, "kind"},
        {{.kind = "a\nb", .key = "", .body = ""}, FLY_EUSAGE, "control"},
        {{.kind = long_kind, .key = "", .body = ""}, FLY_ELIMIT, "at most 64"},
        {{.kind = "a", .key = NULL, .body = ""}, FLY_EUSAGE, "key"},
        {{.kind = "a", .key = long_key, .body = ""}, FLY_ELIMIT, "at most 200"},
        {{.kind = "a", .key = "\xC3", .body = ""}, FLY_EUSAGE, "UTF-8"},
        {{.kind = "a", .key = "", .body = NULL}, FLY_EUSAGE, "body"},
        {{.kind = "a", .key = "", .body = "\xED\xA0\x80"}, FLY_EUSAGE, "UTF-8"},
        {{.kind = "a", .key = "", .body = "\xC0\x80"}, FLY_EUSAGE, "UTF-8"},
        {{.kind = "a", .key = "", .body = "\xF4\x90\x80\x80"}, FLY_EUSAGE, "UTF-8"},
        {{.kind = "a", .key = "", .body = "", .trial = (uint64_t)INT64_MAX + 1}, FLY_ELIMIT, "trial"},
        {{.kind = "a", .key = "", .body = "", .time_us = -1}, FLY_EUSAGE, "1970"},
    };
    struct store *store = store_fixture_open();
    struct store_change *change = NULL;
    struct fly_error error = {0};

    (void)state;
    memset(long_key, 'k', sizeof long_key - 1);
    memset(long_name, 'n', sizeof long_name - 1);
    memset(long_kind, 'k', sizeof long_kind - 1);
    check_refused(store_change_begin(store, "", STORE_MAKE_JOB, &change, &error), FLY_EUSAGE, &error, "name");
    check_refused(store_change_begin(store, "a\tb", STORE_MAKE_JOB, &change, &error), FLY_EUSAGE, &error,
                  "name");
    check_refused(store_change_begin(store, long_name, STORE_MAKE_JOB, &change, &error), FLY_ELIMIT, &error,
                  "name");
    change = store_fixture_change(store, store_fixture_job("refused"));
    for (size_t i = 0; i < COUNT(cases); i++)
        check_refused(store_change_append(change, &cases[i].event, NULL, &error), cases[i].code, &error,
                      cases[i].part);
    assert_int_equal(store_fixture_append(change, "made", 0, "", "{}"), 1);
    check_done(store_change_commit(change, &error), &error);
    store_close(store);
}

static void test_one_change_at_a_time(void **state)
{
    const char *job = store_fixture_job("one");
    const struct store_event event = {.kind = "made", .key = "", .body = "{}"};
    struct store *store = store_fixture_open();
    struct store_change *change = store_fixture_change(store, job), *second = NULL;
    struct fly_error error = {0};

    (void)state;
    check_refused(store_change_begin(store, job, STORE_MAKE_JOB, &second, &error), FLY_ESTATE, &error,
                  "is open");
    check_refused(store_read(store, job, &everything, store_fixture_keep, &kept, &error), FLY_ESTATE, &error,
                  "is open");
    check_refused(store_list_jobs(store, ignore_job, NULL, &error), FLY_ESTATE, &error, "is open");
    store_fixture_append(change, "made", 0, "", "{}");
    check_done(store_change_commit(change, &error), &error);
    check_refused(store_change_append(change, &event, NULL, &error), FLY_ESTATE, &error, "has ended");
    check_refused(store_change_commit(change, &error), FLY_ESTATE, &error, "has ended");
    store_change_rollback(change);
    assert_int_equal(store_fixture_count(store, job), 1);
    store_close(store);
}

struct listing {
    char names[4][160];
    size_t count;
};

static int list_mine(void *state, const struct store_job *job, struct fly_error *out_error)
{
    struct listing *listing = state;

    (void)out_error;
    if (strstr(job->name, "listed") != NULL && listing->count < COUNT(listing->names))
        snprintf(listing->names[listing->count++], sizeof listing->names[0], "%s", job->name);
    return 0;
}

static void test_list(void **state)
{
    static const char *const names[] = {"B listed", "a listed", "b listed", "\xC3\x84 listed"};
    struct store *store = store_fixture_open();
    struct listing listing = {.count = 0};
    struct fly_error error = {0};
    struct store_job job;

    (void)state;
    for (size_t i = COUNT(names); i-- > 0;)
        store_fixture_add(store, store_fixture_job(names[i]), 0, "");
    check_done(store_list_jobs(store, list_mine, &listing, &error), &error);
    assert_int_equal(listing.count, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(listing.names[i], store_fixture_job(names[i]));
    check_done(store_find_job(store, store_fixture_job("b listed"), take_job, &job, &error), &error);
    assert_int_equal(job.events, 1);
    assert_true(job.made_us > 0 && job.made_us == job.changed_us);
    store_close(store);
}

static struct wall_time virtual_date(void *state)
{
    return *(struct wall_time *)state;
}

static void test_clock(void **state)
{
    struct wall_time date = {.ns = 1000000000000007999};
    const struct clock clock = {.name = "virtual", .date = virtual_date, .state = &date};
    const struct store_options options = {.clock = &clock};
    const char *job = store_fixture_job("clock");
    struct store *store = store_fixture_open_with(&options);
    struct fly_error error = {0};
    struct store_job found;

    (void)state;
    store_fixture_add(store, job, 0, "");
    date.ns -= 5000000000;
    store_fixture_add(store, job, 0, "");
    store_fixture_read(store, job, &everything, &kept);
    assert_int_equal(kept.events[0].time_us, 1000000000000007);
    assert_int_equal(kept.events[1].time_us, 999999995000007);
    check_done(store_find_job(store, job, take_job, &found, &error), &error);
    assert_int_equal(found.made_us, 1000000000000007);
    assert_int_equal(found.changed_us, 999999995000007);
    store_close(store);
}

/* In the child: exits with 0 where every call is refused. */
static void act_in_child(struct store *store, struct store_change *change, const char *job)
{
    const struct store_event event = {.kind = "made", .key = "", .body = "{}"};
    struct fly_error error;
    struct store_change *another;
    struct kept none;
    int wrong = 0;

    wrong += store_change_append(change, &event, NULL, &error) != FLY_ESTATE;
    wrong += store_change_read(change, &everything, store_fixture_keep, &none, &error) != FLY_ESTATE;
    wrong += store_change_commit(change, &error) != FLY_ESTATE;
    wrong += store_change_begin(store, job, STORE_MAKE_JOB, &another, &error) != FLY_ESTATE;
    wrong += store_read(store, job, &everything, store_fixture_keep, &none, &error) != FLY_ESTATE;
    store_change_rollback(change);
    store_close(store);
    _exit(wrong == 0 ? 0 : 1);
}

static void test_inert_after_fork(void **state)
{
    const char *job = store_fixture_job("forked");
    struct store *store = store_fixture_open();
    struct store_change *change = store_fixture_change(store, job);
    struct fly_error error = {0};
    int status = -1;
    pid_t child;

    (void)state;
    store_fixture_append(change, "made", 0, "before", "{}");
    child = fork();
    if (child == 0)
        act_in_child(store, change, job);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    store_fixture_append(change, "made", 0, "after", "{}");
    check_done(store_change_commit(change, &error), &error);
    assert_int_equal(store_fixture_count(store, job), 2);
    assert_int_equal(store_fixture_add(store, job, 0, ""), 3);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visitors),
        cmocka_unit_test(test_refused_arguments),
        cmocka_unit_test(test_one_change_at_a_time),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_inert_after_fork),
    };

    return cmocka_run_group_tests_name("store calls", tests, store_fixture_begin, store_fixture_end);
}

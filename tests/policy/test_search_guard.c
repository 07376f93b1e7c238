/* SPDX-License-Identifier: Apache-2.0 */
/* The guard by itself. */
#include <math.h>

#include "test.h"

#include "policy/search_guard.h"

static void end(struct guard *guard, uint64_t recurrence, double cost)
{
    guard_take_try(guard, recurrence, cost, true);
}

static void run_default(struct guard *guard, uint64_t recurrence, double cost)
{
    guard_take_default(guard, cost);
    end(guard, recurrence, cost);
}

static struct guard guard_with_level(bool follows)
{
    struct guard guard;

    guard_init(&guard, follows);
    run_default(&guard, 0, 100.0);
    return guard;
}

static void test_asks_then_gives_way(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 9; i++)
        end(&guard, i, 80.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 9, 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 10, 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    /* The default still takes what it took: the two stay dear, and a third is one too many. */
    run_default(&guard, 11, 100.0);
    assert_int_equal(guard_dear(&guard), 2);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 12, 121.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    assert_int_equal(guard_advise(&guard, 1), GUARD_GO_ON);
    assert_false(guard_begins_anew(&guard)); /* the search is young */
    for (uint64_t i = 13; guard_advise(&guard, 0) == GUARD_DEFAULT; i++) {
        guard_take_advice(&guard);
        assert_true(i < 19);
        run_default(&guard, i, 100.0);
    }
    assert_int_equal(guard_dear(&guard), 2);
    assert_false(guard.rests);
}

static void test_begins_anew_where_it_should_know(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 40; i++)
        end(&guard, i, i < 36 ? 80.0 : 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    assert_true(guard_begins_anew(&guard));
    guard_take_advice(&guard);
    run_default(&guard, 40, 100.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    assert_false(guard_begins_anew(&guard)); /* once */
}

/* Where the default has become dearer as well, nothing was dear. */
static void test_judges_again(void **state)
{
    struct guard follows = guard_with_level(true), other = guard_with_level(false);

    (void)state;
    end(&follows, 1, 200.0);
    end(&follows, 2, 200.0);
    assert_int_equal(guard_advise(&follows, 0), GUARD_ASK);
    run_default(&follows, 3, 300.0);
    assert_int_equal(guard_dear(&follows), 0);
    assert_int_equal(guard_advise(&follows, 0), GUARD_GO_ON);
    /* A policy that cannot follow begins anew, once. */
    run_default(&other, 1, 300.0);
    assert_int_equal(guard_advise(&other, 0), GUARD_DEFAULT);
    assert_true(guard_begins_anew(&other));
    guard_take_advice(&other);
    run_default(&other, 2, 300.0);
    assert_int_equal(guard_advise(&other, 0), GUARD_GO_ON);
}

static void test_counts_failed_tries(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    guard_take_try(&guard, 1, 60.0, false);
    guard_take_try(&guard, 2, 30.0, true); /* another recurrence, meanwhile */
    assert_int_equal(guard_dear(&guard), 0);
    assert_int_equal(guard_advise(&guard, 1), GUARD_GO_ON);
    guard_take_try(&guard, 1, 60.0, false);
    assert_int_equal(guard_advise(&guard, 2), GUARD_ASK);
    end(&guard, 1, 20.0);
    assert_int_equal(guard_dear(&guard), 1);
}

static void test_asks_where_costs_rose(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 12; i++)
        end(&guard, i, i % 2 == 0 ? 60.0 : 70.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 12, 110.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON); /* one may be bad luck */
    end(&guard, 13, 110.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    run_default(&guard, 14, 50.0); /* it has become cheaper, so they were dear */
    assert_true(guard_dear(&guard) >= 2);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
}

/* Costs that rise by a hundredth a recurrence are never far above the nine before. */
static void test_asks_where_costs_creep(void **state)
{
    struct guard guard = guard_with_level(true);
    double cost = 60.0;
    uint64_t at = 1;

    (void)state;
    for (; at < 100 && guard_advise(&guard, 0) == GUARD_GO_ON; at++, cost *= 1.01)
        end(&guard, at, cost);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    assert_true(at > 20 && at < 60);
    run_default(&guard, at++, 100.0);
    assert_int_equal(guard_dear(&guard), 0);
    for (uint64_t i = 0; i < 12; i++) /* from here on it must creep up again */
        end(&guard, at + i, cost);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
}

/* Where recurrences overlap, one of them asks; if it never ends, another does. */
static void test_asks_once(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 10; i++)
        end(&guard, i, i < 8 ? 80.0 : 130.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    guard_take_question(&guard);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    assert_int_equal(guard_advise(&guard, 2), GUARD_ASK); /* a recurrence that failed twice must end */
    for (uint64_t i = 10; i < 10 + GUARD_WINDOW; i++)
        end(&guard, i, i % 4 == 0 ? 130.0 : 80.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
    guard_take_question(&guard);
    run_default(&guard, 30, 140.0);
    assert_false(guard.asked);
}

/* Far below the default nobody needs to see it again. */
static void test_lets_cheap_costs_creep(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    for (uint64_t i = 1; i < 60; i++) {
        end(&guard, i, 10.0 * pow(1.01, (double)i));
        assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    }
}

static void test_counts_explorers(void **state)
{
    struct guard guard = guard_with_level(true);

    (void)state;
    assert_int_equal(guard_explorers(&guard), GUARD_DEAR_MOST);
    for (uint64_t i = 1; i <= GUARD_DEAR_MOST + 1; i++) {
        end(&guard, i, 150.0);
        assert_int_equal(guard_explorers(&guard), i < GUARD_DEAR_MOST ? GUARD_DEAR_MOST - i : 0);
    }
    for (uint64_t i = 0; i < GUARD_WINDOW; i++)
        end(&guard, 10 + i, 90.0);
    assert_int_equal(guard_explorers(&guard), GUARD_DEAR_MOST);
}

static void test_asks_what_nobody_knows(void **state)
{
    struct guard guard;

    (void)state;
    guard_init(&guard, false);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    for (uint64_t i = 0; i < 20; i++)
        end(&guard, i, 10.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    end(&guard, 20, 16.0);
    end(&guard, 21, 16.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_ASK);
}

static void test_default_fails(void **state)
{
    struct guard guard = guard_with_level(false);

    (void)state;
    for (uint64_t i = 1; i < 6; i++)
        end(&guard, i, 200.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
    guard_take_default_failed(&guard);
    assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    assert_int_equal(guard_advise(&guard, 5), GUARD_GO_ON);
    run_default(&guard, 6, 100.0);
    assert_int_equal(guard_advise(&guard, 0), GUARD_DEFAULT);
}

/* Steady costs with a tenth of scatter are luck, whoever is best. */
static void test_luck_is_no_reason(void **state)
{
    static const double scatter[] = {-0.1, 0.05, 0.1, -0.05, 0.0, 0.08, -0.08};
    struct guard guard = guard_with_level(false);

    (void)state;
    for (uint64_t i = 1; i < 200; i++) {
        end(&guard, i, 100.0 * (1.0 + scatter[i % COUNT(scatter)]));
        assert_int_equal(guard_advise(&guard, 0), GUARD_GO_ON);
    }
}

static void test_saves(void **state)
{
    struct guard guard = guard_with_level(false), again;
    struct buffer bytes, twice;
    struct bytes_reader reader;

    (void)state;
    for (uint64_t i = 1; i < 12; i++)
        end(&guard, i, 125.0);
    guard_take_try(&guard, 50, 10.0, false);
    guard_take_advice(&guard);
    buffer_init(&bytes, 1 << 16);
    buffer_init(&twice, 1 << 16);
    guard_save(&guard, &bytes);
    guard_init(&again, false);
    reader = bytes_reader(bytes.data, bytes.length);
    guard_load(&again, &reader);
    assert_true(bytes_whole(&reader));
    guard_save(&again, &twice);
    assert_int_equal(twice.length, bytes.length);
    assert_memory_equal(twice.data, bytes.data, bytes.length);
    assert_int_equal(guard_advise(&again, 0), GUARD_DEFAULT);
    buffer_deinit(&bytes);
    buffer_deinit(&twice);
}

static void test_converts_limits(void **state)
{
    static const struct fly_power_point points[] = {{100, 100, 1.2}, {200, 200, 1.0}};
    const struct job_spec job = {.eta = 1.0, .max_power_w = 200.0};

    (void)state;
    check_double(guard_limit_share(&job, points, 2, 100), 0.6);
    check_double(guard_limit_share(&job, points, 2, 200), 1.0);
    check_double(guard_limit_share(&job, points, 2, 150), 1.0);
    check_double(guard_limit_share(&job, NULL, 0, 150), 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asks_then_gives_way),
        cmocka_unit_test(test_begins_anew_where_it_should_know),
        cmocka_unit_test(test_judges_again),
        cmocka_unit_test(test_counts_failed_tries),
        cmocka_unit_test(test_asks_where_costs_rose),
        cmocka_unit_test(test_asks_where_costs_creep),
        cmocka_unit_test(test_asks_once),
        cmocka_unit_test(test_lets_cheap_costs_creep),
        cmocka_unit_test(test_counts_explorers),
        cmocka_unit_test(test_asks_what_nobody_knows),
        cmocka_unit_test(test_default_fails),
        cmocka_unit_test(test_luck_is_no_reason),
        cmocka_unit_test(test_saves),
        cmocka_unit_test(test_converts_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

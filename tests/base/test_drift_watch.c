/* SPDX-License-Identifier: Apache-2.0 */
/* What drifts, and what only scatters. */
#include "test.h"

#include "base/math/drift_watch.h"

enum { SERIES = 1000, LENGTH = 60 };

/* A number of mean 0 and variance 1, nearly normal. */
static double scatter(uint64_t *random)
{
    double sum = -6.0;

    for (size_t i = 0; i < 12; i++)
        sum += test_uniform(random);
    return sum;
}

/* Returns how many of SERIES series drift at their end; each number lies `slope` above the one before. */
static size_t count_drifting(double slope, size_t length)
{
    uint64_t random = 7;
    size_t drifting = 0;

    for (size_t i = 0; i < SERIES; i++) {
        struct drift_watch watch = {.count = 0};

        for (size_t at = 0; at < length; at++)
            drift_watch_take(&watch, slope * (double)at + scatter(&random));
        drifting += drift_watch_drifts(&watch);
    }
    return drifting;
}

static void test_scatter_is_no_drift(void **state)
{
    (void)state;
    assert_true(count_drifting(0.0, 6) <= SERIES / 200);
    assert_true(count_drifting(0.0, 20) <= SERIES / 200);
    assert_true(count_drifting(0.0, LENGTH) <= SERIES / 200);
}

static void test_sees_drift(void **state)
{
    (void)state;
    assert_true(count_drifting(0.15, LENGTH) >= SERIES * 9 / 10);
    assert_true(count_drifting(-0.15, LENGTH) >= SERIES * 9 / 10);
    assert_true(count_drifting(1.0, 20) >= SERIES * 9 / 10);
}

static void test_jump_is_forgotten(void **state)
{
    struct drift_watch watch = {.count = 0};
    uint64_t random = 11;

    (void)state;
    for (size_t i = 0; i < 20; i++)
        drift_watch_take(&watch, 5.0 + scatter(&random));
    assert_false(drift_watch_drifts(&watch));
    for (size_t i = 0; i < 10; i++)
        drift_watch_take(&watch, 15.0 + scatter(&random));
    assert_true(drift_watch_drifts(&watch));
    for (size_t i = 0; i < 300; i++)
        drift_watch_take(&watch, 15.0 + scatter(&random));
    assert_false(drift_watch_drifts(&watch));
}

static void test_equal_numbers(void **state)
{
    struct drift_watch watch = {.count = 0};

    (void)state;
    for (size_t i = 0; i < LENGTH; i++) {
        drift_watch_take(&watch, 3.25);
        assert_false(drift_watch_drifts(&watch));
    }
}

static void test_saves(void **state)
{
    struct drift_watch watch = {.count = 0}, again;
    struct buffer bytes;
    struct bytes_reader reader;

    (void)state;
    for (size_t i = 0; i < 9; i++)
        drift_watch_take(&watch, (double)i);
    buffer_init(&bytes, 1 << 12);
    drift_watch_save(&watch, &bytes);
    reader = bytes_reader(bytes.data, bytes.length);
    assert_true(drift_watch_load(&again, &reader));
    assert_true(bytes_whole(&reader));
    drift_watch_take(&watch, 2.0);
    drift_watch_take(&again, 2.0);
    assert_memory_equal(&watch, &again, sizeof watch);
    buffer_deinit(&bytes);
    buffer_init(&bytes, 1 << 12);
    watch.squares = -1.0;
    drift_watch_save(&watch, &bytes);
    reader = bytes_reader(bytes.data, bytes.length);
    assert_false(drift_watch_load(&again, &reader));
    buffer_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scatter_is_no_drift),
        cmocka_unit_test(test_sees_drift),
        cmocka_unit_test(test_jump_is_forgotten),
        cmocka_unit_test(test_equal_numbers),
        cmocka_unit_test(test_saves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

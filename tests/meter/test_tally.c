/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of many windows: cases with known results, and properties that any windows have. */
#include "meter/tally/tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "test.h"

#define N NAN
#define GPU(start, time, energy, uncertainty, counted)                       \
    {                                                                        \
        "n1", DEVICE_GPU, "GPU-a", start, time, energy, uncertainty, counted \
    }

struct tally_case {
    const char *name;
    struct tally_window windows[5];
    size_t count;
    struct tally_device expected;
};

static const struct tally_case cases[] = {
    {"one window",
     {GPU(100, 10, 1000, 5, true)},
     1,
     {.windows = 1, .time_s = 10, .energy_j = 1000, .uncertainty_j = 5}},
    {"one after the other",
     {GPU(100, 10, 1000, 5, true), GPU(110, 5, 400, 3, true)},
     2,
     {.windows = 2, .time_s = 15, .energy_j = 1400, .uncertainty_j = 8}},
    {"two ranks and who counts",
     {GPU(100, 10, 1000, 5, true), GPU(101, 8, 850, 5, false)},
     2,
     {.windows = 2, .time_s = 10, .energy_j = 1000, .uncertainty_j = 5}},
    {"a rank ends after the one that counts",
     {GPU(100, 10, 1000, 5, true), GPU(102, 10, 1200, 10, false)},
     2,
     {.windows = 2, .time_s = 12, .energy_j = 1240, .uncertainty_j = 5 + 2 + 240, .overlapped = true}},
    {"the longer one counts where both say so",
     {GPU(101, 8, 850, 5, true), GPU(100, 10, 1000, 5, true)},
     2,
     {.windows = 2, .time_s = 10, .energy_j = 1000, .uncertainty_j = 5, .counted_twice = 1}},
    {"one that counts goes before a longer one that does not",
     {GPU(100, 10, 1000, 5, false), GPU(100, 5, 600, 5, true)},
     2,
     {.windows = 2, .time_s = 10, .energy_j = 1100, .uncertainty_j = 5 + 2.5 + 500, .overlapped = true}},
    {"a hole between two is filled by a third",
     {GPU(100, 4, 400, 1, true), GPU(106, 4, 400, 1, true), GPU(100, 10, 1000, 10, false)},
     3,
     {.windows = 3, .time_s = 10, .energy_j = 1000, .uncertainty_j = 2 + 2 + 200, .overlapped = true}},
    {"without an energy",
     {GPU(100, 10, N, N, true)},
     1,
     {.windows = 1, .time_s = 10, .unknown_s = 10, .energy_j = N}},
    {"one knows what another does not",
     {GPU(100, 10, N, N, true), GPU(102, 4, 400, 2, false)},
     2,
     {.windows = 2, .time_s = 10, .unknown_s = 6, .energy_j = 400, .uncertainty_j = 2}},
    {"an estimate has no bound",
     {GPU(100, 10, 1000, N, true), GPU(110, 10, 500, 2, true)},
     2,
     {.windows = 2, .time_s = 20, .energy_j = 1500, .uncertainty_j = 2, .without_bound = true}},
    {"the same moment twice",
     {GPU(100, 10, 1000, 5, true), GPU(100, 10, 1000, 5, false), GPU(100, 10, 1000, 5, false)},
     3,
     {.windows = 3, .time_s = 10, .energy_j = 1000, .uncertainty_j = 5}},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tally_device *expected = &cases[i].expected;
        const struct tally_device *found;
        struct tally tally;

        assert_int_equal(tally_make(cases[i].windows, cases[i].count, &tally, NULL), 0);
        assert_int_equal(tally.count, 1);
        found = &tally.devices[0];
        if (found->windows != expected->windows || fabs(found->time_s - expected->time_s) > 1e-6 ||
            fabs(found->unknown_s - expected->unknown_s) > 1e-6 ||
            isnan(found->energy_j) != isnan(expected->energy_j) ||
            fabs(found->energy_j - expected->energy_j) > 1e-6 ||
            fabs(found->uncertainty_j - expected->uncertainty_j) > 1e-6 ||
            found->without_bound != expected->without_bound || found->overlapped != expected->overlapped ||
            found->counted_twice != expected->counted_twice)
            fail_msg(
                "%s: %zu windows, %g s (%g unknown), %g J +- %g, without bound %d, overlapped %d, twice %zu",
                cases[i].name, found->windows, found->time_s, found->unknown_s, found->energy_j,
                found->uncertainty_j, found->without_bound, found->overlapped, found->counted_twice);
        tally_deinit(&tally);
    }
}

/* Nodes, kinds and names tell devices apart. */
static void test_devices_apart(void **state)
{
    static const struct tally_window windows[] = {
        {"n2", DEVICE_GPU, "GPU-a", 0, 1, 10, 1, true}, {"n1", DEVICE_CPU, "0", 0, 1, 20, 1, true},
        {"n1", DEVICE_GPU, "GPU-b", 0, 1, 30, 1, true}, {"n1", DEVICE_DRAM, "0", 0, 1, 40, 1, true},
        {"n1", DEVICE_GPU, "GPU-a", 0, 1, 50, 1, true}, {"n1", DEVICE_GPU, "GPU-a", 0, 1, 50, 1, false},
    };
    static const double expected_j[] = {50, 30, 20, 40, 10};
    struct tally tally;

    (void)state;
    assert_int_equal(tally_make(windows, COUNT(windows), &tally, NULL), 0);
    assert_int_equal(tally.count, COUNT(expected_j));
    for (size_t i = 0; i < tally.count; i++)
        check_double(tally.devices[i].energy_j, expected_j[i]);
    tally_deinit(&tally);
    assert_int_equal(tally_make(NULL, 0, &tally, NULL), 0);
    assert_int_equal(tally.count, 0);
    tally_deinit(&tally);
}

/*
 * Any windows over a device with constant power: the sum is power times the
 * union of the known times, in any order of the windows, and never more with a
 * window that lies within others.
 */
static void test_constant_power(void **state)
{
    enum { WINDOWS = 12, ROUNDS = 400 };
    const double power_w = 250;
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct tally_window windows[WINDOWS];
        bool seen[200] = {false};
        size_t count = 1 + test_below(&random, WINDOWS);
        struct tally forward, backward;
        double union_s = 0;

        for (size_t i = 0; i < count; i++) {
            uint32_t begin = test_below(&random, 100);
            uint32_t length = 1 + test_below(&random, 99);

            windows[i] =
                (struct tally_window)GPU(1000.0 + begin, length, power_w * length, 1, test_below(&random, 2));
            for (uint32_t at = begin; at < begin + length; at++)
                seen[at] = true;
        }
        for (size_t at = 0; at < COUNT(seen); at++)
            union_s += seen[at];
        assert_int_equal(tally_make(windows, count, &forward, NULL), 0);
        check_close(forward.devices[0].energy_j, power_w * union_s, 1e-9);
        check_close(forward.devices[0].time_s, union_s, 1e-9);
        for (size_t i = 0; i < count / 2; i++) {
            struct tally_window other = windows[i];

            windows[i] = windows[count - 1 - i];
            windows[count - 1 - i] = other;
        }
        assert_int_equal(tally_make(windows, count, &backward, NULL), 0);
        check_double(forward.devices[0].energy_j, backward.devices[0].energy_j);
        check_double(forward.devices[0].uncertainty_j, backward.devices[0].uncertainty_j);
        assert_int_equal(forward.devices[0].counted_twice, backward.devices[0].counted_twice);
        tally_deinit(&forward);
        tally_deinit(&backward);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_devices_apart),
        cmocka_unit_test(test_constant_power),
    };

    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the demo's figures rest on: the interval of a paired change. */
#include "test.h"

#include <math.h>

#include "demo/findings.h"

static void test_student_quantiles(void **state)
{
    /* Percentage points as printed in tables; beyond the tabulated ones by the expansion. */
    static const struct {
        size_t degrees;
        double quantile;
    } printed[] = {{1, 12.7062}, {2, 4.3027},  {9, 2.2622},  {10, 2.2281},  {19, 2.0930}, {20, 2.0860},
                   {21, 2.0796}, {30, 2.0423}, {39, 2.0227}, {120, 1.9799}, {999, 1.9623}};

    (void)state;
    for (size_t i = 0; i < COUNT(printed); i++)
        check_close(paired_student(printed[i].degrees), printed[i].quantile, 5e-5);
    for (size_t n = 1; n < 1000; n++)
        assert_true(paired_student(n + 1) < paired_student(n));
}

/* By hand: R = 0.5, residuals -0.5, 0.5, 0 against a mean of 2. */
static void test_known_interval(void **state)
{
    static const double ours[] = {0.0, 1.5, 1.5}, theirs[] = {1.0, 2.0, 3.0};
    struct paired paired = paired_of(ours, theirs, COUNT(ours));
    double half = paired_student(2) * 0.5 / sqrt(3.0) / 2.0;

    (void)state;
    check_close(paired.change, -0.5, 1e-15);
    check_close(paired.low, -0.5 - half, 1e-14);
    check_close(paired.high, -0.5 + half, 1e-14);
    assert_false(paired.high < 0.0);
}

static void test_equal_sides_save_nothing(void **state)
{
    double values[50];
    uint64_t random = 1;

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = 1.0 + test_uniform(&random);
    for (size_t n = 1; n <= COUNT(values); n++) {
        struct paired paired = paired_of(values, values, n);

        assert_true(paired.change == 0.0);
        assert_true(n == 1 ? isnan(paired.low) && isnan(paired.high)
                           : paired.low == 0.0 && paired.high == 0.0);
        assert_false(paired.high < 0.0);
    }
}

/* Over many repetitions the interval holds the truth about as often as it says. */
static void test_interval_covers(void **state)
{
    enum { REPETITIONS = 4000, PAIRS = 10 };
    struct luck luck = luck_open(luck_key(1, "coverage"), 1, 0);
    int covered = 0;

    (void)state;
    for (int i = 0; i < REPETITIONS; i++) {
        double ours[PAIRS], theirs[PAIRS];
        struct paired paired;

        for (int p = 0; p < PAIRS; p++) {
            double noise[2];

            for (int side = 0; side < 2; side++)
                noise[side] = 1.0 + 0.2 * luck_normal(&luck);
            ours[p] = 0.7 * noise[0];
            theirs[p] = noise[1];
        }
        paired = paired_of(ours, theirs, PAIRS);
        covered += paired.low <= -0.3 && -0.3 <= paired.high;
    }
    assert_in_range(covered, REPETITIONS * 92 / 100, REPETITIONS * 97 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_student_quantiles),
        cmocka_unit_test(test_known_interval),
        cmocka_unit_test(test_equal_sides_save_nothing),
        cmocka_unit_test(test_interval_covers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

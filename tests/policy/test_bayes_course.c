/* SPDX-License-Identifier: Apache-2.0 */
/* How many recurrences are expected, and which of them doubt. */
#include <math.h>

#include "test.h"

#include "policy/bayes_belief.h"

static struct bayes_prospect after(uint64_t reached, double horizon, double following)
{
    const struct bayes_course course = {.reached = reached, .doubt = DOUBT_LARGER};

    return bayes_prospect_of(&course, horizon, following, false);
}

static void test_horizon(void **state)
{
    (void)state;
    check_double(after(0, 0.0, NAN).horizon, 20.0);
    check_double(after(6, 0.0, NAN).horizon, 21.0);
    check_double(after(8, 0.0, NAN).horizon, 27.0);
    check_double(after(9, 0.0, NAN).horizon, 30.0);
    check_double(after(UINT64_MAX, 0.0, NAN).horizon, 30.0);
    check_double(after(6, 70.0, NAN).horizon, 70.0);
    check_double(after(6, 0.0, 21.0).horizon, 21.0);
    check_double(after(6, 0.0, 3.0).horizon, 3.0);
    check_double(after(6, 0.0, -1.0).horizon, 0.0);
}

/* With few recurrences left, or a horizon that was given, nothing is doubted. */
static void test_no_doubt(void **state)
{
    (void)state;
    assert_int_equal(after(6, 0.0, NAN).doubt, DOUBT_LARGER);
    assert_int_equal(after(6, 0.0, 21.0).doubt, DOUBT_LARGER);
    assert_int_equal(after(6, 0.0, 3.0).doubt, DOUBT_NONE);
    assert_int_equal(after(6, 70.0, NAN).doubt, DOUBT_NONE);
}

static enum doubt next_doubt(const struct bayes_course *course)
{
    return bayes_prospect_of(course, 0.0, NAN, false).doubt;
}

/* Checks which recurrences doubt, one after the other; each of these with the next. */
static void check_doubts(uint64_t elsewhere, const uint64_t *larger, size_t count)
{
    struct bayes_course course = {0};
    size_t next = 0;

    for (uint64_t i = 1; i <= 1000; i++) {
        enum doubt doubt = next_doubt(&course);

        if (next < count && i == larger[next]) {
            assert_int_equal(doubt, DOUBT_LARGER);
        } else if (next < count && i == larger[next] + 1) {
            assert_int_equal(doubt, DOUBT_SMALLER);
            next++;
        } else {
            assert_int_equal(doubt, DOUBT_NONE);
        }
        bayes_course_propose(&course);
        assert_int_equal(bayes_prospect_of(&course, 0.0, NAN, true).doubt, doubt);
        bayes_course_reach(&course, elsewhere);
    }
    assert_int_equal(next, count);
}

static void test_doubts(void **state)
{
    static const uint64_t alone[] = {12, 36, 108, 324, 972}, short_past[] = {36, 108, 324, 972},
                          long_past[] = {60, 180, 540};

    (void)state;
    check_doubts(0, alone, COUNT(alone));
    check_doubts(1, short_past, COUNT(short_past));
    check_doubts(18, short_past, COUNT(short_past));
    check_doubts(30, long_past, COUNT(long_past));
}

/* Eight at a time: one of a burst doubts, and one of the next, though no burst begins with the 12th. */
static void test_bursts(void **state)
{
    enum { BURST = 8, BURSTS = 10 };
    struct bayes_course course = {0};
    size_t doubts[DOUBT_COUNT] = {0};

    (void)state;
    for (size_t burst = 0; burst < BURSTS; burst++) {
        size_t before = doubts[DOUBT_NONE];

        for (size_t i = 0; i < BURST; i++) {
            doubts[next_doubt(&course)]++;
            bayes_course_propose(&course);
        }
        assert_true(doubts[DOUBT_NONE] >= before + BURST - 1);
        for (size_t i = 0; i < BURST; i++)
            bayes_course_reach(&course, 0);
    }
    assert_int_equal(doubts[DOUBT_LARGER], 2); /* after 11 and after 35 */
    assert_int_equal(doubts[DOUBT_SMALLER], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_horizon),
        cmocka_unit_test(test_no_doubt),
        cmocka_unit_test(test_doubts),
        cmocka_unit_test(test_bursts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

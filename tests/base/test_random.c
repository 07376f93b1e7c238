/* SPDX-License-Identifier: Apache-2.0 */
/* Generators against published vectors, numpy's own numbers, and the law they should follow. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "base/math/numpy_random.h"
#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "base/math/ziggurat.h"

/* Known answers of Philox4x32-10 from the Random123 distribution. */
static void test_philox_known_answers(void **state)
{
    static const struct {
        uint32_t key[2], counter[4], words[4];
    } rows[] = {
        {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0xa4093822, 0x299f31d0},
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t words[4];

        philox_block(rows[i].key, rows[i].counter, words);
        for (int w = 0; w < 4; w++)
            assert_int_equal(words[w], rows[i].words[w]);
    }
}

static void test_philox_streams(void **state)
{
    const struct philox_key key = philox_key(7, "nightly"), other = philox_key(7, "weekly");
    struct philox one = philox_open(key, 3, 11, 0), filled = one, later = philox_open(key, 3, 11, 2);
    uint64_t words[21];

    (void)state;
    assert_true(key.job != other.job);
    assert_int_equal(philox_u64(&filled), philox_u64(&one));
    philox_fill(&filled, words, COUNT(words)); /* begins in the middle of a block */
    for (size_t i = 0; i < COUNT(words); i++)
        assert_int_equal(words[i], philox_u64(&one));
    assert_int_equal(philox_u64(&later), words[3]);
}

static void test_philox_below_is_even(void **state)
{
    struct philox philox = philox_open(philox_key(1, "even"), 0, 0, 0);
    size_t counts[7] = {0};
    const size_t draws = 70000;
    double chi2 = 0.0;

    (void)state;
    for (size_t i = 0; i < draws; i++) {
        uint32_t value = philox_below(&philox, 7);

        assert_true(value < 7);
        counts[value]++;
    }
    for (size_t i = 0; i < 7; i++)
        chi2 += pow((double)counts[i] - 10000.0, 2.0) / 10000.0;
    assert_true(chi2 < 22.5); /* 99.9 % of chi squared with 6 degrees of freedom */
    for (int i = 0; i < 10; i++)
        assert_int_equal(philox_below(&philox, 1), 0);
}

/* Recorded from numpy 1.24, default_rng(seed). */
static void test_numpy_vectors(void **state)
{
    static const struct {
        uint32_t seed;
        uint64_t raw[3];
        uint32_t choices[6]; /* from 1, 2, 5, 10, 1000, 7 */
        uint64_t after;      /* raw, behind a permutation of 9 */
        double normals[3];
    } rows[] = {
        {0u,
         {0xa30febcfd9c2825fu, 0x4510bdf882d9d721u, 0x0a7d3da94ecde8b8u},
         {0, 1, 3, 5, 269, 2},
         0x00b37868abbe90b0u,
         {0.1257302210933933, -0.1321048632913019, 0.6404226504432821}},
        {1u,
         {0x8306bdf37922e4ffu, 0xf35196bbc152a866u, 0x24e7a4f608ec18cdu},
         {0, 0, 2, 7, 950, 0},
         0x89c3c29ad67f9ca4u,
         {0.345584192064786, 0.8216181435011584, 0.33043707618338714}},
        {42u,
         {0xc621fbcd16d92688u, 0x705a5661a791ffc1u, 0xdbcd12c26eda1624u},
         {0, 0, 3, 6, 438, 3},
         0xed4078662ebb92afu,
         {0.30471707975443135, -1.0399841062404955, 0.7504511958064572}},
        {4294967295u,
         {0x407f5fa930d8fd9fu, 0x3814b22eb9684802u, 0x498b7dcee8d8dc95u},
         {0, 0, 1, 7, 219, 6},
         0xdeae86c5b984e82au,
         {-0.027271763074256376, 0.2153539268318988, -0.6669252679186933}},
    };
    static const uint32_t counts[6] = {1, 2, 5, 10, 1000, 7};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct numpy_random raw = numpy_random_seed(rows[i].seed), choices = raw, normals = raw;

        for (int n = 0; n < 3; n++) {
            assert_int_equal(numpy_random_u64(&raw), rows[i].raw[n]);
            check_close(numpy_random_normal(&normals), rows[i].normals[n], 1e-14);
        }
        for (int n = 0; n < 6; n++)
            assert_int_equal(numpy_random_choice(&choices, counts[n]), rows[i].choices[n]);
        numpy_random_skip_permutation(&choices, 9);
        assert_int_equal(numpy_random_u64(&choices), rows[i].after);
    }
}

/* Far into a sequence, across wedges and tails, numpy 1.24 again. */
static void test_numpy_normals_stay_in_step(void **state)
{
    struct numpy_random random = numpy_random_seed(7);
    double last = 0.0;

    (void)state;
    for (int i = 0; i < 2000000; i++) {
        last = numpy_random_normal(&random);
        if (i == 2311)
            check_close(last, -3.661081810206792, 1e-13);
        if (i == 4657)
            check_close(last, 4.06160631065189, 1e-13);
    }
    check_close(last, -0.43722195997503704, 1e-13);
}

static void test_normals_follow_the_law(void **state)
{
    struct philox philox = philox_open(philox_key(3, "law"), 0, 0, 0);
    const int count = 1000000;
    double sum = 0.0, squares = 0.0, fourths = 0.0;
    int tail = 0;

    (void)state;
    for (int i = 0; i < count; i++) {
        double z = ziggurat_normal(ziggurat_tables(), philox_u64(&philox), philox_source, &philox);

        sum += z;
        squares += z * z;
        fourths += z * z * z * z;
        tail += fabs(z) > 3.0;
    }
    assert_true(fabs(sum / count) < 4.0 / sqrt(count));
    assert_true(fabs(squares / count - 1.0) < 4.0 * sqrt(2.0 / count));
    assert_true(fabs(fourths / count - 3.0) < 4.0 * sqrt(96.0 / count));
    assert_true(abs(tail - 2700) < 4 * 52); /* 0.0027 of them, binomial */
}

static void test_portable_math(void **state)
{
    const double ulp = 0x1p-52;

    (void)state;
    for (double x = -700.0; x < 700.0; x += 0.0937)
        check_close(portable_exp(x), exp(x), 2.0 * ulp);
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        check_close(portable_log(x), log(x), 2.0 * ulp);
    for (double x = 0.9; x < 1.1; x += 0.00013)
        check_close(portable_log(x), log(x), 2.0 * ulp);
    check_double(portable_exp(0.0), 1.0);
    check_double(portable_exp(-1000.0), 0.0);
    check_double(portable_exp(1000.0), INFINITY);
    check_close(portable_exp(-745.0), 0x1p-1074, 0.0);
    check_double(portable_log(1.0), 0.0);
    check_double(portable_log(0.0), -INFINITY);
    assert_true(isnan(portable_log(-1.0)));
    assert_true(isnan(portable_exp(NAN)));
}

/* The bits themselves, which may not change with compiler or machine. */
static void test_portable_math_bits(void **state)
{
    static const struct {
        double x, exp_x, log_x;
    } rows[] = {
        {0.1, 0x1.1aec7b35a00d4p+0, -0x1.26bb1bbb55515p+1},
        {0.5, 0x1.a61298e1e069cp+0, -0x1.62e42fefa39efp-1},
        {2.5, 0x1.85d6fd931e0bbp+3, 0x1.d5240f0e0e078p-1},
        {7.75, 0x1.223251387247cp+11, 0x1.061acc9140e62p+1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_double(portable_exp(rows[i].x), rows[i].exp_x);
        check_double(portable_log(rows[i].x), rows[i].log_x);
    }
}

/* e^x as its header has it, step by step. */
static double plain_exp(double x)
{
    double k = floor(x / 0x1.62e42fefa39efp-1 + 0.5), sum = 1.0;
    double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;

    for (int n = 13; n >= 1; n--)
        sum = 1.0 + r / n * sum;
    return ldexp(sum, (int)k);
}

static void check_same_bits(double x, double got, double expected)
{
    if (got != expected)
        fail_msg("e^%a: %a, expected %a", x, got, expected);
}

/* However the series is computed, alone or for many numbers at once, its bits are those of the plain one. */
static void test_portable_exp_all(void **state)
{
    double x[9], all[9];

    (void)state;
    for (double first = -745.0; first < 709.0; first += 0.0313) {
        size_t count = 1 + (size_t)fabs(first) % COUNT(x);

        for (size_t i = 0; i < count; i++)
            all[i] = x[i] = first * (1.0 - 0.12 * (double)i);
        portable_exp_all(all, count);
        for (size_t i = 0; i < count; i++) {
            check_same_bits(x[i], all[i], plain_exp(x[i]));
            check_same_bits(x[i], portable_exp(x[i]), plain_exp(x[i]));
        }
    }
}

static void test_portable_exp_all_beyond(void **state)
{
    double numbers[] = {-INFINITY, 0.0, NAN, 800.0, 1.0, -800.0, INFINITY};

    (void)state;
    portable_exp_all(numbers, COUNT(numbers));
    check_double(numbers[0], 0.0);
    check_double(numbers[1], 1.0);
    assert_true(isnan(numbers[2]));
    check_double(numbers[3], INFINITY);
    check_double(numbers[4], portable_exp(1.0));
    check_double(numbers[5], 0.0);
    check_double(numbers[6], INFINITY);
    portable_exp_all(numbers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_philox_streams),
        cmocka_unit_test(test_philox_below_is_even),
        cmocka_unit_test(test_numpy_vectors),
        cmocka_unit_test(test_numpy_normals_stay_in_step),
        cmocka_unit_test(test_normals_follow_the_law),
        cmocka_unit_test(test_portable_math),
        cmocka_unit_test(test_portable_math_bits),
        cmocka_unit_test(test_portable_exp_all),
        cmocka_unit_test(test_portable_exp_all_beyond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

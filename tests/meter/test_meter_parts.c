/* SPDX-License-Identifier: Apache-2.0 */
/* What the meter is made of, by itself: counters, integrals, variation, and the formulas of uncertainty. */
#include "test.h"

#include "meter/counter.h"
#include "meter/integral.h"
#include "meter/sensing.h"
#include "meter/uncertainty.h"
#include "meter/variation.h"

static struct mono_time at_ms(int64_t ms)
{
    return (struct mono_time){ms * 1000000};
}

/* Readings of a counter, and the total that they come to, relative to the first. */
static void test_counter(void **state)
{
    static const struct {
        int64_t ms;
        uint64_t value_uj;
        double fill_j;
        int64_t total_uj;
        uint32_t resets, holes;
        double age_low_s, age_high_s;
    } readings[] = {
        {0, 1000, NAN, 0, 0, 0, 0.0, INFINITY},
        {10, 1000, NAN, 0, 0, 0, 0.01, INFINITY},
        {20, 1500, NAN, 500, 0, 0, 0.0, 0.01},
        {50, 1500, NAN, 500, 0, 0, 0.03, 0.04},
        {60, 9000, NAN, 8000, 0, 0, 0.0, 0.01},
        {55, 1500, NAN, 500, 0, 0, 0.0, INFINITY},  /* late: as it was then */
        {59, 9300, NAN, 8300, 0, 0, 0.0, INFINITY}, /* late by its stamp, though it is the newer one */
        {70, 9500, NAN, 8500, 0, 0, 0.0, 0.01},
        {80, 100, 0.002, 10500, 1, 0, 0.0, 0.01}, /* reset, filled */
        {90, 300, NAN, 10700, 1, 0, 0.0, 0.01},
        {95, 0, NAN, 10700, 2, 1, 0.0, 0.005}, /* reset, not filled */
    };
    struct counter counter = {0};
    uint64_t first_uj = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(readings); i++) {
        struct counter_edge edge =
            counter_take(&counter, at_ms(readings[i].ms), readings[i].value_uj, readings[i].fill_j);

        if (i == 0)
            first_uj = edge.total_uj;
        assert_true(edge.known);
        assert_int_equal((int64_t)(edge.total_uj - first_uj), readings[i].total_uj);
        assert_int_equal(edge.resets, readings[i].resets);
        assert_int_equal(edge.holes, readings[i].holes);
        check_close(edge.age_low_s, readings[i].age_low_s, 1e-9);
        check_close(edge.age_high_s, readings[i].age_high_s, 1e-9);
    }
    check_close(counter.held_s, 0.03, 0.01);
}

/* A second of a counter at 300 W, read ten times a second, with wrong readings from the third on. */
static void test_counter_goes_on_after_wrong_readings(void **state)
{
    static const struct {
        const char *what;
        double power_max_w; /* 0: unknown */
        double off_j[10];
        double total_j;
        bool filled;
    } cases[] = {
        {"right", 0, {0}, 270, false},
        {"one 5 kJ too high", 0, {[3] = 5e3}, 270, false},
        {"three 5 kJ too high", 0, {[3] = 5e3, 5e3, 5e3}, 270, false},
        {"one of 213 J too high", 800, {[3] = 213}, 270, false},
        {"one of 213 J too high, which a device of that kind can draw", 0, {[3] = 213}, 270, false},
        {"one of 0", 0, {[3] = -1e6}, 270, false},
        {"all but two of 0", 0, {[2] = -1e6, -1e6, -1e6, -1e6, -1e6, -1e6, -1e6}, 270, false},
        {"213 J back, twice", 0, {[3] = -213, [6] = -213}, 270, false},
        {"4.3 MJ up, and stays", 0, {[3] = 4.3e6, 4.3e6, 4.3e6, 4.3e6, 4.3e6, 4.3e6, 4.3e6}, 270, true},
        {"begins anew, and stays", 0, {[3] = -1e6, -1e6, -1e6, -1e6, -1e6, -1e6, -1e6}, 270, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct counter counter = {.power_max_w = cases[i].power_max_w};
        struct counter_edge first = {0}, edge = {0};

        for (int k = 0; k < 10; k++) {
            double value_j = fmax(1e6 + 30.0 * k + cases[i].off_j[k], 0.0);

            edge = counter_take(&counter, at_ms(100L * k), (uint64_t)(value_j * 1e6), 30.0);
            if (k == 0)
                first = edge;
        }
        if (fabs((double)(int64_t)(edge.total_uj - first.total_uj) - cases[i].total_j * 1e6) > 10 ||
            (edge.filled_uj != first.filled_uj) != cases[i].filled)
            fail_msg("%s: %g J", cases[i].what, (double)(int64_t)(edge.total_uj - first.total_uj) * 1e-6);
    }
}

/* Exact over wraps; what nothing could have drawn is no wrap. */
static void test_counter_wraps(void **state)
{
    struct counter counter = {.modulus_uj = 1000000};
    uint64_t truth_uj = 999990, random = 3, first_uj;

    (void)state;
    first_uj = counter_take(&counter, at_ms(0), truth_uj, NAN).total_uj;
    for (int i = 1; i < 10000; i++) {
        struct counter_edge edge;

        truth_uj += test_below(&random, 1000000);
        edge = counter_take(&counter, at_ms(20L * i), truth_uj % 1000000, NAN);
        assert_int_equal(edge.total_uj - first_uj, truth_uj - 999990);
        assert_int_equal(edge.resets + edge.holes, 0);
    }
    /* Late readings on either side of a wrap. */
    counter = (struct counter){.modulus_uj = 1000};
    first_uj = counter_take(&counter, at_ms(0), 990, NAN).total_uj;
    assert_int_equal(counter_take(&counter, at_ms(20), 10, NAN).total_uj - first_uj, 20);
    assert_int_equal(counter_take(&counter, at_ms(19), 995, NAN).total_uj - first_uj, 5);
    assert_int_equal(counter_take(&counter, at_ms(19), 15, NAN).total_uj - first_uj, 25);
    counter = (struct counter){.modulus_uj = UINT64_C(1) << 40};
    (void)counter_take(&counter, at_ms(0), 5000, NAN);
    assert_int_equal(counter_take(&counter, at_ms(100), 10, NAN).holes, 1);
}

static void test_integral(void **state)
{
    struct integral integral = {.gap_max_s = 1.0};
    struct integral_edge edge;

    (void)state;
    assert_false(integral_edge(&integral, at_ms(0)).known);
    integral_take(&integral, at_ms(0), 100.0);
    edge = integral_between(&integral, at_ms(50), at_ms(100), 200.0);
    check_close(edge.total_j, 0.05 * 125.0, 1e-12);
    integral_take(&integral, at_ms(100), 200.0);
    check_close(integral.total_j, 15.0, 1e-12);
    integral_take(&integral, at_ms(60), 7.0); /* late: nothing */
    check_close(integral_edge(&integral, at_ms(150)).total_j, 25.0, 1e-12);
    check_close(integral_edge(&integral, at_ms(50)).total_j, 5.0, 1e-12);
    assert_false(integral_edge(&integral, at_ms(1200)).known);
    integral_take(&integral, at_ms(1200), 50.0);
    check_close(integral.holes_s, 1.1, 1e-12);
    check_close(integral.holes_j, 1.1 * 125.0, 1e-12);
    check_close(integral.total_j, 15.0 + 1.1 * 125.0, 1e-12);
}

/* Whatever the powers, 95 % of draws are held, and none of much use is lost. */
static void test_edges(void **state)
{
    static const double pairs[][2] = {{1.0, 1.0},  {1.0, 0.9}, {1.0, 0.5},   {1.0, 0.2},
                                      {1.0, 0.05}, {1.0, 0.0}, {30.0, 40.0}, {2.0, 70.0}};
    enum { DRAWS = 100000 };
    uint64_t random = 11;

    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const struct uncertainty_edge begin = {pairs[i][0], 0.01, 0.03}, end = {pairs[i][1], 0.02, 0.1};
        double half_j = uncertainty_ages_j(&begin, &end);
        int held = 0;

        for (int k = 0; k < DRAWS; k++) {
            double missed_j = begin.power_w * (0.01 + 0.02 * test_uniform(&random)) -
                              end.power_w * (0.02 + 0.08 * test_uniform(&random));

            held += fabs(missed_j) <= half_j;
        }
        assert_in_range(held, DRAWS * 949 / 1000, DRAWS);
    }
}

/* Knowing more of the ages never widens, and more power never narrows. */
static void test_ages(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct uncertainty_edge begin = {300.0 * test_uniform(&random), 0.0, 0.1};
        struct uncertainty_edge end = {300.0 * test_uniform(&random), 0.0, 0.1};
        double wide_j = uncertainty_ages_j(&begin, &end);

        assert_true(wide_j >= 0.0);
        begin.age_high_s = end.age_high_s = 0.02;
        assert_true(uncertainty_ages_j(&begin, &end) <= wide_j);
        begin.power_w *= 2.0;
        end.power_w *= 2.0;
        check_close(uncertainty_ages_j(&begin, &end), 2.0 * wide_j * 0.2, 1e-9);
    }
}

static void test_unseen(void **state)
{
    struct uncertainty_sensor sensor = {
        .period_s = 0.1, .window_s = 0.025, .apart_s = 0.1, .local_w2 = 100.0};
    double short_j = uncertainty_unseen_j(&sensor, 1.0), long_j = uncertainty_unseen_j(&sensor, 100.0);

    (void)state;
    assert_true(long_j > 8.0 * short_j && long_j < 10.0 * short_j); /* as the root of the length, nearly */
    sensor.window_s = 0.1;
    check_double(uncertainty_unseen_j(&sensor, 1.0), 0.0); /* sees all, without noise */
    sensor.noise_w2 = 4.0;
    check_close(uncertainty_unseen_j(&sensor, 1.0), 1.96 * sqrt(1.2 * 10.0) * 0.1 * 2.0, 1e-9);
    sensor.window_s = 1.0; /* averages over more than a period: sees all too */
    check_close(uncertainty_unseen_j(&sensor, 1.0), 1.96 * sqrt(1.2 * 10.0) * 0.1 * 2.0, 1e-9);
}

/* Constant power varies by nothing; steps are found again at their size. */
static void test_variation(void **state)
{
    static struct variation variation;
    struct variation_edge begin, end;
    struct variation_mean mean;

    (void)state;
    variation_init(&variation, 0.1);
    begin = variation_edge(&variation);
    for (int i = 0; i < 6000; i++)
        variation_take(&variation, at_ms(100L * i), 250.0, 250.0);
    end = variation_edge(&variation);
    mean = variation_between(&variation, &begin, &end);
    assert_true(mean.local_w2 < 1e-3);
    check_double(mean.noise_w2, 0.0);
    assert_true(variation_held_j(&variation, 0.05, 10.0) < 1e-3);
    check_close(variation_edges_w(&variation), 0.975 * 250.0, 0.2); /* within a bin */
    assert_true(variation_edges_w(&variation) >= 0.975 * 250.0);
    for (int i = 6000; i < 12000; i++)
        variation_take(&variation, at_ms(100L * i), i % 2 ? 300.0 : 200.0, 300.0);
    begin = end;
    end = variation_edge(&variation);
    mean = variation_between(&variation, &begin, &end);
    check_close(mean.noise_w2, 100.0 * 100.0, 0.02);
    check_close(mean.local_w2, 0.5 * 0.5 * 100.0 * 100.0, 0.02);
    /* A change of 100 W within 50 ms, held: 95 % of 5 J; no more than the window holds. */
    check_close(variation_held_j(&variation, 0.05, 10.0), 0.95 * 5.0, 0.2);
    check_close(variation_held_j(&variation, 0.05, 0.01), 1.0, 0.2);
}

/* Old loads fade: a day of one, ten minutes of the other. */
static void test_variation_fades(void **state)
{
    static struct variation variation;
    int64_t ms = 0;

    (void)state;
    variation_init(&variation, 0.1);
    for (; ms < 86400000; ms += 100)
        variation_take(&variation, at_ms(ms), ms % 200 ? 400.0 : 100.0, 400.0);
    assert_true(isfinite(variation_held_j(&variation, 0.05, 1.0)));
    assert_true(variation_held_j(&variation, 0.05, 1.0) > 10.0);
    for (; ms < 87000000; ms += 100)
        variation_take(&variation, at_ms(ms), 100.0, 100.0);
    assert_true(variation_held_j(&variation, 0.05, 1.0) < 0.01);
    assert_true(variation_edges_w(&variation) < 120.0);
}

static void test_sensing(void **state)
{
    struct device_info info = {.kind = DEVICE_GPU};
    struct sensing sensing = sensing_of(&info, 0.1, false);

    (void)state;
    check_double(sensing.counter_period_s, 0.1); /* unknown: the worst seen */
    check_double(sensing.power_window_s, 0.025);
    check_close(sensing.lag_s, 0.0625, 1e-12);
    info.sensor =
        (struct sensor_facts){.counter_period_s = 0.02, .power_period_s = 0.02, .power_window_s = 0.01};
    sensing = sensing_of(&info, 0.1, false);
    check_double(sensing.counter_period_s, 0.02);
    check_close(sensing.lag_s, 0.015, 1e-12);
    sensing = sensing_of(&info, 0.1, true);
    check_double(sensing.power_window_s, 1.0);
    info = (struct device_info){.kind = DEVICE_CPU};
    check_double(sensing_of(&info, 0.1, false).counter_period_s, 0.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),         cmocka_unit_test(test_counter_goes_on_after_wrong_readings),
        cmocka_unit_test(test_counter_wraps),   cmocka_unit_test(test_integral),
        cmocka_unit_test(test_edges),           cmocka_unit_test(test_ages),
        cmocka_unit_test(test_unseen),          cmocka_unit_test(test_variation),
        cmocka_unit_test(test_variation_fades), cmocka_unit_test(test_sensing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Counter and power fused at a window's edges: each rule by hand, and knots that are learnt from. */
#include "meter/fusion.h"

#include "meter/knots.h"
#include "meter/summing.h"
#include "test.h"

/* An edge at a moment, with an age that is known exactly. */
static struct fusion_edge edge(double at_s, double total_j, double age_s, double power_w)
{
    return (struct fusion_edge){
        .at_s = at_s, .total_j = total_j, .age_low_s = age_s, .age_high_s = age_s, .power_w = power_w};
}

/* 200 W throughout: whatever the ages, the energy is exact. */
static void test_constant_power(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        double begin_s = 0.01 * i, end_s = 0.09 - 0.005 * i, length_s = 0.5 - begin_s + end_s;
        struct fusion_window window = {.begin = edge(0.0, 0.0, begin_s, 200.0),
                                       .end = edge(length_s, 100.0, end_s, 200.0)};

        check_close(fusion_energy(&window).energy_j, 200.0 * length_s, 1e-12);
        check_close(fusion_energy(&window).half_j, 0.0, 0.0);
        window.next_count = 1;
        window.next[0] = (struct fusion_update){0.1 - begin_s, 20.0};
        check_close(fusion_energy(&window).energy_j, 200.0 * length_s, 1e-12);
        window.next_count = 2;
        window.next[1] = (struct fusion_update){0.2 - begin_s, 40.0};
        check_close(fusion_energy(&window).energy_j, 200.0 * length_s, 1e-12);
    }
}

/* One jump from 100 to 300 W between the update before the begin and the one after it is put where it was. */
static void test_jump(void **state)
{
    (void)state;
    for (int i = 0; i <= 10; i++) {
        for (int j = 0; j <= 10; j++) {
            double age_s = 0.01 * i, jump_s = 0.01 * j; /* both after the update before the begin */
            double stretch_j = 100.0 * jump_s + 300.0 * (0.1 - jump_s);
            double before_j = 100.0 * fmin(age_s, jump_s) + 300.0 * fmax(age_s - jump_s, 0.0);
            struct fusion_window window = {
                .begin = edge(0.0, 0.0, age_s, 100.0),
                .end = edge(0.5 - age_s, stretch_j + 120.0, 0.0, 300.0),
                .next_count = 2,
                .next = {{0.1 - age_s, stretch_j}, {0.2 - age_s, stretch_j + 30.0}},
            };

            check_close(fusion_energy(&window).energy_j, stretch_j + 120.0 - before_j, 1e-9);
        }
    }
}

/* Without an update in it, a window has its power times its length, and the ages do not matter. */
static void test_within_one_period(void **state)
{
    struct fusion_window window = {
        .begin = edge(0.0, 0.0, 0.01, 150.0), .end = edge(0.02, 0.0, 0.03, 150.0), .surprise_w = 30.0};

    (void)state;
    check_close(fusion_energy(&window).energy_j, 3.0, 1e-12);
    check_close(fusion_energy(&window).half_j, 0.6, 1e-12);
}

/* Each part of the half width by itself, and all of them. */
static void test_half_width(void **state)
{
    struct fusion_window window = {.begin = edge(0.0, 0.0, 0.0, 100.0), .end = edge(1.0, 100.0, 0.04, 100.0)};

    (void)state;
    window.begin.age_high_s = 0.006;
    window.end.age_low_s = 0.036;
    window.end.age_high_s = 0.044;
    check_close(fusion_energy(&window).half_j, 0.5, 1e-9); /* 3 and 4 ms of 100 W */
    window.begin.age_high_s = 0.0;
    window.end.age_low_s = window.end.age_high_s = 0.04;
    window.surprise_w = 50.0;
    check_close(fusion_energy(&window).half_j, 2.0, 1e-9);
    window.surprise_w = 0.0;
    window.step_j = 1.0;
    check_close(fusion_energy(&window).half_j, 0.78, 1e-9);
    window.step_j = 0.0;
    window.summed_half_j = 7.0;
    check_close(fusion_energy(&window).half_j, 7.0, 1e-9);
    window.surprise_w = 600.0;
    check_close(fusion_energy(&window).half_j, 25.0, 1e-9);
}

static struct mono_time moment(double at_s)
{
    return (struct mono_time){(int64_t)llround(at_s * 1e9)};
}

/* Whichever of the two powers proves right is the one that is expected. */
static void test_expected_power(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        struct knots knots;
        uint64_t total_uj = 5000000;

        knots_init(&knots);
        assert_true(isnan(knots_power_w(&knots, NAN)));
        check_double(knots_power_w(&knots, 120.0), 120.0);
        assert_true(isinf(knots_surprise_w(&knots)));
        /* Readings that scatter about a constant power; or a power that wanders, and readings that know. */
        for (int i = 0; i < 400; i++) {
            double power_w = noisy ? 200.0 : 150.0 + 100.0 * test_uniform(&random);
            double reading_w = noisy ? power_w + 20.0 * (test_uniform(&random) - 0.5) : NAN;

            total_uj += (uint64_t)(power_w * 1e5);
            if (!noisy)
                reading_w = power_w;
            (void)knots_take(&knots, moment(0.1 * i), total_uj, reading_w, true);
        }
        if (noisy) {
            check_close(knots_power_w(&knots, 210.0), 200.0, 0.001);
            assert_true(knots_surprise_w(&knots) <= 14.0);
        } else {
            assert_true(knots_surprise_w(&knots) >= 50.0);
            assert_true(knots_surprise_w(&knots) <= 130.0);
        }
        assert_false(knots_disagree(&knots));
    }
}

static void test_knots(void **state)
{
    struct knots knots;

    (void)state;
    knots_init(&knots);
    assert_true(knots_take(&knots, moment(1.0), 10000000, 100.0, true));
    assert_false(knots_take(&knots, moment(1.0), 10000000, 100.0, true)); /* the same update */
    assert_true(knots_take(&knots, moment(1.1), 20003000, 100.0, true));
    check_close(knots.mean_w, 100.03, 1e-9);
    assert_true(knots_take(&knots, moment(1.2), 29998000, 100.0, true));
    check_double(knots_step_j(&knots), 0.001);
    assert_true(knots_take(&knots, moment(1.3), 1000, 100.0, false)); /* the counter was reset */
    assert_true(isnan(knots.mean_w));
    assert_true(knots_take(&knots, moment(5.0), 300000000, 100.0, true)); /* too far apart */
    assert_true(isnan(knots.mean_w));
}

/* A counter that sees twice what readings see: in the long run that shows. */
static void test_disagreement(void **state)
{
    struct knots knots;
    uint64_t total_uj = 0;

    (void)state;
    knots_init(&knots);
    for (int i = 0; i < 300; i++) {
        total_uj += 20000000;
        (void)knots_take(&knots, moment(0.1 * i), total_uj, 100.0, true);
        assert_true(i > 100 || !knots_disagree(&knots));
    }
    assert_true(knots_disagree(&knots));
}

/* Counters that sum the readings, a bit late and at times two at once; and one that sees what they do not. */
static void test_summing(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int sees_all = 0; sees_all < 2; sees_all++) {
        struct summing summing;
        double before_w = 100.0;

        summing_init(&summing);
        for (int i = 0; i < 300; i++) {
            double reading_w = 100.0 + 200.0 * test_uniform(&random),
                   mean_w = 100.0 + 200.0 * test_uniform(&random);
            double rise_j = 0.1 * before_w;

            if (i % 50 == 10)
                rise_j = 0.0;
            if (i % 50 == 11)
                rise_j = 0.1 * (before_w + reading_w);
            summing_take(&summing, sees_all ? 0.1 * mean_w : rise_j, reading_w, NAN, 0.1);
            before_w = reading_w;
        }
        assert_int_equal(summing_is_disproved(&summing), sees_all);
    }
}

/* A constant power proves nothing, and neither do rises or readings that are not known. */
static void test_summing_unknown(void **state)
{
    struct summing summing;

    (void)state;
    summing_init(&summing);
    for (int i = 0; i < 300; i++)
        summing_take(&summing, 20.0, 200.0, 210.0, 0.1);
    for (int i = 0; i < 300; i++)
        summing_take(&summing, NAN, 100.0 + i, NAN, 0.1);
    assert_false(summing_is_disproved(&summing));
    summing_init(&summing);
    for (int i = 0; i < 300; i++)
        summing_take(&summing, 10.0 + i, NAN, NAN, 0.1);
    assert_false(summing_is_disproved(&summing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_power),    cmocka_unit_test(test_jump),
        cmocka_unit_test(test_within_one_period), cmocka_unit_test(test_half_width),
        cmocka_unit_test(test_expected_power),    cmocka_unit_test(test_knots),
        cmocka_unit_test(test_disagreement),      cmocka_unit_test(test_summing),
        cmocka_unit_test(test_summing_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

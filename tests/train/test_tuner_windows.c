/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that go on until their energy is known: short steps under a counter that moves ten times a second.
 */
#include "test.h"

#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};

/* The made profile with steps of that length at the highest limit. */
static void make_short(struct tuner_profile *profile, double step_s)
{
    double factor;

    tuner_profile_made(profile, 1);
    factor = step_s / profile->step_s[0];
    for (size_t i = 0; i < profile->count; i++)
        profile->step_s[i] *= factor;
}

struct outcome {
    int near, settled;
    int points, held; /* valid points, and those whose interval holds the truth */
    double longest_s;
};

static void look_at_points(const struct fly_tuner *tuner, const struct tuner_profile *profile,
                           struct outcome *outcome)
{
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    size_t count = fly_tuner_points(tuner, points, TUNER_LIMITS_MAX);

    for (size_t i = 0; i < count; i++) {
        struct fly_power_point truth = tuner_profile_truth(profile, i);

        if (points[i].mark != FLY_TUNER_VALID)
            continue;
        outcome->points++;
        outcome->held +=
            fabs(points[i].power_w - truth.power_w) <= points[i].energy_error * points[i].power_w;
    }
}

static struct outcome run(const struct tuner_profile *profile, double tolerance, unsigned epoch_steps)
{
    enum { SEEDS = 60 };
    struct outcome outcome = {0};
    struct tuner_bench bench;
    double best =
        tuner_score(profile, &energy, tuner_profile_find(profile, tuner_profile_best_w(profile, &energy)));

    tuner_bench_start(&bench, profile, "board");
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fly_tuner_options options = tuner_bench_options(&bench, energy);
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        tuner_bench_reset(&bench, seed);
        tuner_bench_pass(&bench, 2.0 + 0.1 * test_uniform(&bench.random)); /* another phase of the counter */
        options.energy_tolerance = tolerance;
        tuner = tuner_bench_tuner(&bench, &options);
        report = tuner_bench_settle(&bench, tuner, epoch_steps);
        outcome.settled += report.state == FLY_TUNER_SETTLED;
        outcome.near +=
            tuner_score(profile, &energy, tuner_profile_find(profile, report.limit_w)) <= 1.02 * best;
        look_at_points(tuner, profile, &outcome);
        fly_tuner_free(tuner);
    }
    tuner_bench_stop(&bench);
    assert_int_equal(outcome.settled, SEEDS);
    return outcome;
}

/* Limits that contend are measured for longer, whatever the tolerance; the intervals hold the truth. */
static void test_contenders(void **state)
{
    static const double tolerances[] = {0.0, 0.04, 1.0};
    struct tuner_profile profile;

    (void)state;
    make_short(&profile, 0.015);
    for (size_t i = 0; i < COUNT(tolerances); i++) {
        struct outcome outcome = run(&profile, tolerances[i], 0);

        print_message("# near the best: %d of 60\n", outcome.near);
        assert_true(outcome.near >= 57);
        assert_true(outcome.held * 100 >= outcome.points * 95);
    }
}

/* Epochs divide windows, and what their edges miss adds up. */
static void test_epochs(void **state)
{
    struct tuner_profile profile;
    struct outcome outcome;

    (void)state;
    make_short(&profile, 0.015);
    outcome = run(&profile, 0.04, 97);
    assert_true(outcome.near >= 57);
    assert_true(outcome.held * 100 >= outcome.points * 95);
}

static struct fly_tuner_report settle_once(const struct tuner_profile *profile,
                                           struct fly_tuner_options changes, bool every_limit,
                                           struct fly_tuner_point *points)
{
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;

    tuner_bench_start(&bench, profile, "board");
    tuner_bench_pass(&bench, 2.0);
    options = tuner_bench_options(&bench, changes.objective);
    options.energy_tolerance = changes.energy_tolerance;
    options.window_max_s = changes.window_max_s;
    tuner = tuner_bench_tuner(&bench, &options);
    if (every_limit)
        tuner_measure_every_limit(tuner);
    report = tuner_bench_settle(&bench, tuner, 0);
    fly_tuner_points(tuner, points, TUNER_LIMITS_MAX);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    return report;
}

/* A tolerance that no window can reach ends at the longest one, and the points say what they are worth. */
static void test_longest_window(void **state)
{
    struct tuner_profile profile;
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    struct fly_tuner_report report;

    (void)state;
    make_short(&profile, 0.015);
    report = settle_once(
        &profile,
        (struct fly_tuner_options){.objective = energy, .energy_tolerance = 0.001, .window_max_s = 3.0}, true,
        points);
    assert_true(report.search_time_s < (double)profile.count * 3.5);
    assert_true(report.search_time_s > (double)profile.count * 2.5);
    for (size_t i = 0; i < profile.count; i++) {
        assert_int_equal(points[i].mark, FLY_TUNER_VALID);
        assert_true(points[i].energy_error > 0.001 && points[i].energy_error < 0.10);
    }
}

/* Limits above all that is drawn differ by chance alone, and the report says how many there are. */
static void test_ties(void **state)
{
    struct tuner_profile profile;
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    struct fly_tuner_report report;

    (void)state;
    make_short(&profile, 0.015);
    for (size_t i = 0; i < profile.count && profile.limit_w[i] >= 150.0; i++) {
        profile.power_w[i][0] = 130.0;
        profile.step_s[i] = profile.step_s[0];
    }
    report = settle_once(&profile, (struct fly_tuner_options){.objective = energy}, true, points);
    assert_true(report.limit_w >= 150.0);
    assert_true(report.ties >= 4);
}

/* Where energy cannot change the choice, steps are not spent on it. */
static void test_time_needs_no_energy(void **state)
{
    static const struct fly_objective rows[] = {{FLY_OBJECTIVE_TIME, 0.0, INFINITY},
                                                {FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 1.10}};
    struct tuner_profile profile;
    struct fly_tuner_point points[TUNER_LIMITS_MAX];

    (void)state;
    make_short(&profile, 0.015);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_tuner_report report =
            settle_once(&profile, (struct fly_tuner_options){.objective = rows[i]}, false, points);

        assert_true(report.search_steps <= 451);
        check_double(report.limit_w, tuner_profile_best_w(&profile, &rows[i]));
    }
}

/* 40 steps of half a millisecond have no energy at all; for two seconds it is waited for. */
static void test_too_short_for_a_figure(void **state)
{
    struct tuner_profile profile;
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    struct fly_tuner_report report;
    size_t best;

    (void)state;
    make_short(&profile, 0.0005);
    report = settle_once(&profile, (struct fly_tuner_options){.objective = energy}, false, points);
    best = tuner_profile_find(&profile, tuner_profile_best_w(&profile, &energy));
    assert_true(tuner_score(&profile, &energy, tuner_profile_find(&profile, report.limit_w)) <=
                1.03 * tuner_score(&profile, &energy, best));
}

/*
 * The first check of a choice is one more window of it. Where all windows together leave it unsure that the
 * bound is kept, the race goes on and measures again, in place of a step to a higher limit.
 */
static void test_first_check_goes_on(void **state)
{
    const struct fly_objective bounded = {FLY_OBJECTIVE_ENERGY, 0.0, 1.10};
    struct fly_tuner_report before, after;
    struct tuner_profile profile;
    struct fly_tuner_options options;
    struct tuner_bench bench;
    struct fly_tuner *tuner;

    (void)state;
    make_short(&profile, 0.04);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, bounded);
    bench.random = 11;
    bench.step_noise = 0.002;
    tuner = tuner_bench_tuner(&bench, &options);
    while (fly_tuner_state(tuner) == FLY_TUNER_SEARCHING)
        tuner_bench_step(&bench, tuner);
    before = tuner_bench_report(tuner);
    bench.slower = 1.03;
    while (fly_tuner_state(tuner) == FLY_TUNER_CHECKING && tuner_bench_report(tuner).looks == before.looks)
        tuner_bench_step(&bench, tuner);
    bench.slower = 1.0;
    after = tuner_bench_settle(&bench, tuner, 0);
    print_message("# %g W, then %g W; looks %u, then %u; back-offs %u\n", before.limit_w, after.limit_w,
                  before.looks, after.looks, after.backoffs);
    assert_true(after.looks > before.looks);
    assert_int_equal(after.backoffs, 0);
    assert_int_equal(after.searches, 1);
    assert_true(profile.step_s[tuner_profile_find(&profile, after.limit_w)] <= 1.10 * profile.step_s[0]);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contenders),           cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_longest_window),       cmocka_unit_test(test_ties),
        cmocka_unit_test(test_time_needs_no_energy), cmocka_unit_test(test_too_short_for_a_figure),
        cmocka_unit_test(test_first_check_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

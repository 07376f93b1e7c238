/* SPDX-License-Identifier: Apache-2.0 */
/* Every fault: training goes on at the limit it started with, and the report says why. */
#include "test.h"

#include <stdlib.h>

#include "meter_fixture.h"
#include "train/tuner/tuner.h"
#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};

static void fail_set(struct tuner_bench *bench)
{
    bench->sets_until_failing = 0;
}

static void fail_set_once(struct tuner_bench *bench)
{
    bench->sets_until_failing = 0;
    bench->fails_once = true;
}

/* The knob no longer answers, and so cannot be turned back either, until it does again. */
static void hide(struct tuner_bench *bench)
{
    bench->unreadable = true;
}

static void change_limit(struct tuner_bench *bench)
{
    double limit_w = tuner_bench_limit_w(bench) == 150.0 ? 200.0 : 150.0;

    for (unsigned gpu = 0; gpu < bench->gpus; gpu++)
        emulator_set_limit_w(bench->emulator, gpu, limit_w, NULL);
}

static void lose_gpu(struct tuner_bench *bench)
{
    emulator_lose(bench->emulator, 0);
}

static void set_faults(struct tuner_bench *bench, const char *script)
{
    struct fault_list faults = {0};
    struct fly_error error;

    if (faults_parse(script, "test", &faults, &error) < 0)
        fail_msg("%s", error.text);
    emulator_set_faults(bench->emulator, &faults);
}

static void silence_sensors(struct tuner_bench *bench)
{
    set_faults(bench, "call nvmlDeviceGetTotalEnergyConsumption return NOT_SUPPORTED\n"
                      "call nvmlDeviceGetFieldValues return NOT_SUPPORTED\n"
                      "call nvmlDeviceGetPowerUsage return NOT_SUPPORTED\n");
}

static void heat(struct tuner_bench *bench)
{
    set_faults(bench, "at 0s hot\n");
}

static const struct {
    const char *name;
    void (*happens)(struct tuner_bench *bench);
    enum fly_tuner_reason reason;
    bool restored; /* at the start's limit afterwards */
    const char *part;
} faults[] = {
    {"set fails", fail_set, FLY_TUNER_SET_FAILED, false, "no permission"},
    {"set fails once", fail_set_once, FLY_TUNER_SET_FAILED, true, "no permission"},
    {"unreadable", hide, FLY_TUNER_UNREADABLE, true, "does not answer"},
    {"another program", change_limit, FLY_TUNER_FOREIGN_CHANGE, false, "another program"},
    {"lost", lose_gpu, FLY_TUNER_UNREADABLE, false, "does not answer"},
    {"no figure", silence_sensors, FLY_TUNER_NO_FIGURE, true, "no energy"},
    {"hot", heat, FLY_TUNER_NO_CHOICE, true, "hot"},
};

static void check_fault(size_t row, unsigned before)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_tuner_report report;
    double changed_w;

    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    emulator_set_limit_w(bench.emulator, 0, 275.0, NULL);
    options = tuner_bench_options(&bench, energy);
    options.warmup_steps = 10;
    options.profile_steps = 40; /* or it would have settled too soon */
    options.check_every_steps = 50;
    tuner = tuner_bench_tuner(&bench, &options);
    for (unsigned i = 0; i < before; i++)
        tuner_bench_step(&bench, tuner);
    assert_int_not_equal(fly_tuner_state(tuner), FLY_TUNER_STOPPED);
    faults[row].happens(&bench);
    changed_w = tuner_bench_limit_w(&bench);
    for (unsigned i = 0; i < 400; i++)
        tuner_bench_step(&bench, tuner);
    assert_int_equal(fly_tuner_epoch_end(tuner), 0);
    report = tuner_bench_report(tuner);
    if (report.reason != faults[row].reason)
        fail_msg("%s after %u steps: '%s' (%s)", faults[row].name, before,
                 fly_tuner_reason_name(report.reason), report.text);
    assert_int_equal(report.state, FLY_TUNER_STOPPED);
    check_contains(report.text, faults[row].part);
    check_double(report.start_limit_w, 275.0);
    if (faults[row].restored)
        check_double(tuner_bench_limit_w(&bench), 275.0);
    if (faults[row].reason == FLY_TUNER_FOREIGN_CHANGE)
        check_double(tuner_bench_limit_w(&bench), changed_w);
    fly_tuner_free(tuner);
    if (faults[row].reason == FLY_TUNER_FOREIGN_CHANGE)
        check_double(tuner_bench_limit_w(&bench), changed_w); /* its value wins, also at the end */
    tuner_bench_stop(&bench);
}

static void test_faults(void **state)
{
    static const unsigned moments[] = {20, 80, 110, 170};

    (void)state;
    for (size_t row = 0; row < COUNT(faults); row++) {
        for (size_t i = 0; i < COUNT(moments); i++)
            check_fault(row, moments[i]);
    }
}

/* Settled, every one is seen at the next check. */
static void test_faults_when_settled(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT(faults); row++) {
        /* Nothing is set any more, and heat changes nothing that is to be chosen. */
        if (faults[row].reason != FLY_TUNER_SET_FAILED && faults[row].reason != FLY_TUNER_NO_CHOICE)
            check_fault(row, 560);
    }
}

/* Nothing that can be set from the first: nothing ever changes. */
static void test_no_permission(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    emulator_set_limit_w(bench.emulator, 0, 275.0, NULL);
    bench.sets_until_failing = 0;
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    assert_int_equal(tuner_bench_settle(&bench, tuner, 0).reason, FLY_TUNER_SET_FAILED);
    check_double(tuner_bench_limit_w(&bench), 275.0);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* What costs no more than a window is measured again, and the choice is the same. */
static void test_survived(void **state)
{
    static const char *const scripts[] = {
        "at 0s reset-counter\n",
        "call nvmlDeviceGetTotalEnergyConsumption nth 40 return UNKNOWN\n",
        "call nvmlDeviceGetPowerUsage slow 1ms\n",
        "call nvmlDeviceGetTemperature return NOT_SUPPORTED\n",
        "call nvmlDeviceGetUtilizationRates return NO_PERMISSION\n",
    };
    struct tuner_profile profile;
    struct tuner_bench bench;

    (void)state;
    tuner_profile_made(&profile, 1);
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct fly_tuner_options options;
        struct fly_tuner *tuner;
        struct fly_tuner_report report;

        tuner_bench_start(&bench, &profile, "exact");
        options = tuner_bench_options(&bench, energy);
        tuner = tuner_bench_tuner(&bench, &options);
        for (unsigned step = 0; step < 40; step++)
            tuner_bench_step(&bench, tuner);
        set_faults(&bench, scripts[i]);
        report = tuner_bench_settle(&bench, tuner, 0);
        if (report.state != FLY_TUNER_SETTLED)
            fail_msg("script %zu: %s", i, report.text);
        check_double(report.limit_w, tuner_profile_best_w(&profile, &energy));
        fly_tuner_free(tuner);
        tuner_bench_stop(&bench);
    }
}

/* A knob that takes everything, over a GPU made up. */
static double taken_w;

static int take_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    *out_range = (struct fly_turner_range){.lowest = 100.0, .highest = 300.0};
    return 0;
}

static int take(void *data, double limit_w, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    taken_w = limit_w;
    return 0;
}

static int taken(void *data, double *out_limit_w, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    *out_limit_w = taken_w;
    return 0;
}

static void test_spoiled(void **state)
{
    static const struct fly_turner turner = {take_range, take, taken};
    static const struct {
        int64_t throttle;
        const char *part;
    } rows[] = {{THROTTLE_POWER_BRAKE, "braked"}, {THROTTLE_HEAT_HARDWARE, "hot"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct meter_fixture fixture;
        struct fly_tuner_options options = {.size = sizeof options, .turner = &turner, .objective = energy};
        struct fly_tuner *tuner;
        struct fly_tuner_report report;

        taken_w = 250.0;
        fixture_set_up(&fixture, &fixture_counting, 1);
        fixture.fakes[0].throttle = rows[i].throttle;
        fixture_open(&fixture, 8);
        options.meter = fixture.meter;
        assert_int_equal(tuner_new(&options, &fixture.clock, &tuner, NULL), 0);
        for (int step = 0; step < 400; step++) {
            assert_int_equal(fly_tuner_step_begin(tuner), 0);
            fixture_pass(&fixture, 0.1);
        }
        report = tuner_bench_report(tuner);
        assert_int_equal(report.reason, FLY_TUNER_NO_CHOICE);
        check_contains(report.text, rows[i].part);
        check_double(taken_w, 250.0);
        fly_tuner_free(tuner);
        fixture_tear_down(&fixture);
    }
}

/* A limit that was honoured while it was tried, and no longer is when it is chosen. */
static void test_no_longer_honoured(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_tuner_report report;
    double best_w;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, (struct fly_objective){FLY_OBJECTIVE_COST, 0.5, INFINITY});
    best_w = tuner_profile_best_w(&profile, &options.objective);
    tuner = tuner_bench_tuner(&bench, &options);
    for (int step = 0; step < 12; step++)
        tuner_bench_step(&bench, tuner);
    bench.clamp_w = 200.0;
    emulator_set_limit_w(bench.emulator, 0, 200.0, NULL);
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(report.state, FLY_TUNER_STOPPED);
    fly_tuner_free(tuner);

    tuner_bench_reset(&bench, 1);
    tuner = tuner_bench_tuner(&bench, &options);
    while (tuner_bench_limit_w(&bench) >= best_w)
        tuner_bench_step(&bench, tuner);
    bench.clamp_w = tuner_bench_limit_w(&bench);
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(report.reason, FLY_TUNER_SET_FAILED);
    check_contains(report.text, "reads back");
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* Whether every valid point is what the profile says of the limit that was enforced while it was measured. */
static void check_enforced(const struct fly_tuner *tuner, const struct tuner_profile *profile)
{
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    size_t count = fly_tuner_points(tuner, points, TUNER_LIMITS_MAX);

    for (size_t i = 0; i < count; i++) {
        double enforced_w = fly_tuner_enforced_w(tuner, i);
        size_t place;

        if (points[i].mark != FLY_TUNER_VALID)
            continue;
        assert_true(enforced_w <= points[i].limit_w);
        place = tuner_profile_find(profile, enforced_w);
        check_close(points[i].time_s, profile->step_s[place], 1e-3);
        check_close(points[i].power_w, profile->power_w[place][0], 0.02);
        if (enforced_w < 250.0)
            assert_int_equal(points[i].bound, FLY_TUNER_BOUND);
    }
}

/* Limits above what is enforced are not measured after the highest, and say why. */
static void check_other_names(const struct fly_tuner *tuner, double enforced_w, bool all_measured)
{
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    size_t count = fly_tuner_points(tuner, points, TUNER_LIMITS_MAX);

    assert_int_equal(points[0].mark, FLY_TUNER_VALID);
    for (size_t i = 1; i < count; i++) {
        if (points[i].limit_w >= enforced_w) {
            assert_int_equal(points[i].mark, FLY_TUNER_ENFORCED_LOWER);
            check_double(fly_tuner_enforced_w(tuner, i), enforced_w);
        } else if (all_measured) {
            assert_int_equal(points[i].mark, FLY_TUNER_VALID);
        } else {
            assert_int_not_equal(points[i].mark, FLY_TUNER_ENFORCED_LOWER);
        }
    }
}

/* Every limit is measured once, and none twice by another name; of two boards, all have to enforce less. */
static void test_limits_by_another_name(void **state)
{
    (void)state;
    for (size_t gpus = 1; gpus <= 2; gpus++) {
        struct tuner_profile profile;
        struct tuner_bench bench;
        struct fly_tuner_options options;
        struct fly_tuner *tuner;

        tuner_profile_made(&profile, gpus);
        tuner_bench_start(&bench, &profile, "exact");
        options = tuner_bench_options(&bench, energy);
        if (gpus == 1)
            tuner_bench_enforce(&bench, 200.0);
        else
            emulator_set_enforced_w(bench.emulator, 0, 200.0);
        tuner = tuner_bench_tuner(&bench, &options);
        tuner_measure_every_limit(tuner);
        assert_int_equal(tuner_bench_settle(&bench, tuner, 0).state, FLY_TUNER_SETTLED);
        check_other_names(tuner, gpus == 1 ? 200.0 : INFINITY, true);
        check_double(fly_tuner_enforced_w(tuner, 0), 200.0);
        fly_tuner_free(tuner);
        tuner_bench_stop(&bench);
    }
}

/* A board that enforces less than was asked for: what is enforced binds, and the points say so. */
static void test_enforced_below_requested(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_tuner_report report;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, (struct fly_objective){FLY_OBJECTIVE_TIME, 0.0, INFINITY});
    tuner_bench_enforce(&bench, 200.0);
    tuner = tuner_bench_tuner(&bench, &options);
    assert_true(isnan(fly_tuner_enforced_w(tuner, 0)));
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    check_double(fly_tuner_enforced_w(tuner, 0), 200.0);
    check_enforced(tuner, &profile);
    check_other_names(tuner, 200.0, false);
    assert_true(isnan(fly_tuner_enforced_w(tuner, profile.count)));
    fly_tuner_free(tuner);

    /* A window in which the boards begin to enforce less does not count. */
    tuner_bench_reset(&bench, 1);
    tuner = tuner_bench_tuner(&bench, &options);
    for (int step = 0; step < 20; step++)
        tuner_bench_step(&bench, tuner);
    tuner_bench_enforce(&bench, 150.0);
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    check_double(fly_tuner_enforced_w(tuner, 0), 150.0);
    check_enforced(tuner, &profile);
    check_other_names(tuner, 150.0, false);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

static void test_refused(void **state)
{
    static const double outside[] = {300.0, 50.0};
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options base, rows[4];
    struct fly_tuner *tuner = NULL;
    struct fly_error error;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    base = tuner_bench_options(&bench, energy);
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = base;
    rows[0].size = 8;
    rows[1].meter = NULL;
    rows[2].limits_w = outside, rows[2].limit_count = 2;
    rows[3].objective.max_slowdown = 0.5;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(fly_tuner_new(&rows[i], &tuner, &error), FLY_EUSAGE);
        assert_null(tuner);
    }
    bench.unreadable = true;
    assert_int_equal(fly_tuner_new(&base, &tuner, &error), FLY_EREAD);
    fly_tuner_free(NULL);
    assert_int_equal(bench.sets, 0);
    tuner_bench_stop(&bench);
}

static void test_disabled(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    setenv("FLYBALL_DISABLE", "1", 1);
    tuner = tuner_bench_tuner(&bench, &options);
    unsetenv("FLYBALL_DISABLE");
    for (int i = 0; i < 500; i++)
        tuner_bench_step(&bench, tuner);
    assert_int_equal(tuner_bench_report(tuner).reason, FLY_TUNER_DISABLED);
    fly_tuner_free(tuner);
    assert_int_equal(bench.sets, 0);
    tuner_bench_stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_faults_when_settled),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_survived),
        cmocka_unit_test(test_no_longer_honoured),
        cmocka_unit_test(test_enforced_below_requested),
        cmocka_unit_test(test_limits_by_another_name),
        cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_disabled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

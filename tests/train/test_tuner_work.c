/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs without work: no limit is set on them, and nothing is saved. */
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/fault.h"
#include "train/tuner/tuner.h"
#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
static struct tuner_profile busy, idle;

/* Profiles of so many GPUs; `idle` is the same with no load on those from `first` on. */
static void make(size_t gpus, size_t first)
{
    tuner_profile_made(&busy, gpus);
    idle = busy;
    for (size_t i = 0; i < idle.count; i++) {
        for (size_t gpu = first; gpu < gpus; gpu++)
            idle.power_w[i][gpu] = 0.0;
    }
}

/* Removes what is in the directory; returns how many files. */
static size_t empty(const char *directory)
{
    char pattern[96];
    glob_t found = {0};
    size_t count;

    snprintf(pattern, sizeof pattern, "%s/*", directory);
    (void)glob(pattern, 0, NULL, &found);
    count = found.gl_pathc;
    for (size_t i = 0; i < count; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
    return count;
}

static void make_steps(struct tuner_bench *bench, struct fly_tuner *tuner, unsigned steps,
                       unsigned epoch_steps)
{
    for (unsigned step = 0; step < steps; step++) {
        if (step % epoch_steps == 0)
            assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
        tuner_bench_step(bench, tuner);
        if ((step + 1) % epoch_steps == 0)
            assert_int_equal(fly_tuner_epoch_end(tuner), 0);
    }
}

static void check_waits(const struct tuner_bench *bench, const struct fly_tuner *tuner, const char *sentence)
{
    struct fly_tuner_report report = tuner_bench_report(tuner);
    char text[FLY_TUNER_SUMMARY_MAX];

    assert_int_equal(fly_tuner_summary(tuner, text, sizeof text), 0);
    assert_string_equal(text, sentence);
    assert_int_equal(bench->sets, 0);
    assert_int_equal(report.state, FLY_TUNER_SEARCHING);
    assert_string_equal(fly_tuner_reason_name(report.reason), "no work");
    assert_int_equal(strncmp(report.text, sentence, strlen(report.text)), 0);
    assert_int_equal(report.search_steps, 0);
    assert_true(report.idle_share == 1.0);
}

/* In epochs of any length, and steps of any length: nothing is set; with work the search begins. */
static void test_work_begins_later(void **state)
{
    static const struct {
        unsigned steps, epoch_steps;
        double slower;
    } rows[] = {{200, 200, 1.0}, {200, 1, 1.0}, {100, 3, 1.0}, {2000, 500, 0.01}, {20, 7, 100.0}};
    char directory[] = "/tmp/flyball-test-work-XXXXXX";

    (void)state;
    make(1, 0);
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tuner_bench bench;
        struct fly_tuner_options options;
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        tuner_bench_start(&bench, &idle, "board");
        bench.slower = rows[i].slower;
        options = tuner_bench_options(&bench, energy);
        options.profile_directory = directory;
        tuner = tuner_bench_tuner(&bench, &options);
        make_steps(&bench, tuner, rows[i].steps, rows[i].epoch_steps);
        check_waits(&bench, tuner, "GPU 0 had no work: nothing to tune");
        assert_int_equal(empty(directory), 0);
        bench.profile = &busy;
        bench.slower = 1.0;
        for (int step = 0; step < 100 && bench.sets == 0; step++)
            tuner_bench_step(&bench, tuner);
        assert_int_equal(tuner_bench_report(tuner).reason, FLY_TUNER_GOES_ON);
        assert_true(bench.sets > 0);
        report = tuner_bench_settle(&bench, tuner, rows[i].epoch_steps < 3 ? 3 : rows[i].epoch_steps);
        assert_int_equal(report.state, FLY_TUNER_SETTLED);
        assert_int_equal(report.searches, 1);
        assert_true(report.limit_w == tuner_profile_best_w(&busy, &energy));
        /* The steps without work are none of the search. */
        if (report.search_energy_j < 0.9 * 100.0 * report.search_time_s)
            fail_msg("row %zu: %g J in %g s", i, report.search_energy_j, report.search_time_s);
        fly_tuner_free(tuner);
        tuner_bench_stop(&bench);
        assert_int_equal(empty(directory), 1);
    }
    rmdir(directory);
}

/* What the driver does not tell is no rest. */
static void test_unknown(void **state)
{
    struct fault_list faults = {0};
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_error error;

    (void)state;
    make(1, 0);
    tuner_bench_start(&bench, &idle, "board");
    if (faults_parse("call nvmlDeviceGetUtilizationRates return NOT_SUPPORTED\n", "test", &faults, &error) <
        0)
        fail_msg("%s", error.text);
    emulator_set_faults(bench.emulator, &faults);
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    make_steps(&bench, tuner, 3, 3);
    assert_int_equal(tuner_bench_report(tuner).reason, FLY_TUNER_GOES_ON);
    assert_true(bench.sets > 0);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* Work in the middle of long steps is seen, though none is under way when they begin. */
static void test_bursts(void **state)
{
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    (void)state;
    make(1, 0);
    tuner_bench_start(&bench, &busy, "board");
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    for (int step = 0; step < 3; step++) {
        assert_int_equal(fly_tuner_step_begin(tuner), 0);
        tuner_bench_pass(&bench, 10.0);
        emulator_set_load(bench.emulator, 0, 250.0);
        tuner_bench_pass(&bench, 2.0);
        emulator_set_load(bench.emulator, 0, 0.0);
        tuner_bench_pass(&bench, 10.0);
    }
    assert_true(bench.sets > 0);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* Of two GPUs without work both are named; the one that gets some is tuned without the other. */
static void test_one_of_two(void **state)
{
    static struct tuner_profile none;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner_point points[TUNER_LIMITS_MAX];
    struct fly_tuner_report report;
    struct fly_tuner *tuner;
    const bool *left_alone;

    (void)state;
    make(2, 0);
    none = idle;
    make(2, 1);
    tuner_bench_start(&bench, &none, "exact");
    options = tuner_bench_options(&bench, (struct fly_objective){FLY_OBJECTIVE_COST, 0.5, INFINITY});
    tuner = tuner_bench_tuner(&bench, &options);
    left_alone = tuner_left_alone(tuner);
    make_steps(&bench, tuner, 50, 20);
    check_waits(&bench, tuner, "GPUs 0, 1 had no work: nothing to tune");
    bench.profile = &idle;
    report = tuner_bench_settle(&bench, tuner, 50);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    assert_int_equal(report.searches, 1);
    assert_string_equal(report.knob_note, "GPU 1 had no work: left alone");
    assert_true(!left_alone[0] && left_alone[1]);
    assert_int_equal(tuner_key(tuner)->gpu_count, 1);
    assert_true(fly_tuner_points(tuner, points, TUNER_LIMITS_MAX) > 0);
    assert_true(fabs(points[0].power_w - 260.0) < 3.0);
    /* The other one gets some too. */
    bench.profile = &busy;
    for (int step = 0; step < 4000 && left_alone[1]; step++)
        tuner_bench_step(&bench, tuner);
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    assert_int_equal(report.searches, 2);
    assert_string_equal(report.knob_note, "");
    assert_true(!left_alone[1]);
    assert_int_equal(tuner_key(tuner)->gpu_count, 2);
    assert_true(fly_tuner_points(tuner, points, TUNER_LIMITS_MAX) > 0);
    assert_true(fabs(points[0].power_w - 520.0) < 6.0);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_begins_later),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_one_of_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A tuner under a command that tunes: it reports steps, and turns nothing. */
#include "test.h"

#include <stdlib.h>

#include "train/program/step_lines.h"
#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};

/* What train() is to say. */
static const enum step_event expected[] = {
    STEP_EPOCH_BEGIN, STEP_BEGIN, STEP_BEGIN, STEP_EPOCH_END, STEP_EPOCH_BEGIN, STEP_BEGIN,
};

static void train(struct fly_tuner *tuner)
{
    assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
    assert_int_equal(fly_tuner_step_begin(tuner), 0);
    assert_int_equal(fly_tuner_step_begin(tuner), 0);
    assert_int_equal(fly_tuner_epoch_end(tuner), 0);
    assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
    assert_int_equal(fly_tuner_step_begin(tuner), 0);
}

static struct fly_tuner *make(struct tuner_bench *bench, uint32_t rank)
{
    struct fly_tuner_options options = tuner_bench_options(bench, energy);
    struct fly_tuner *tuner;

    options.rank = rank;
    assert_int_equal(fly_tuner_new(&options, &tuner, NULL), 0);
    return tuner;
}

static void test_reports_to_the_command(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct step_lines lines;
    struct fly_tuner_report report = {.size = sizeof report};
    struct fly_tuner *tuner;
    enum step_event event;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    for (uint32_t rank = 0; rank < 2; rank++) { /* the other rank says nothing */
        tuner = make(&bench, rank);
        train(tuner);
        assert_int_equal(fly_tuner_report(tuner, &report), 0);
        assert_int_equal(report.state, FLY_TUNER_STOPPED);
        assert_string_equal(fly_tuner_reason_name(report.reason), "steered");
        assert_int_equal(report.searches, 0);
        fly_tuner_free(tuner);
    }
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(step_lines_next(&lines, &event));
        assert_int_equal(event, expected[i]);
    }
    assert_false(step_lines_next(&lines, &event));
    assert_int_equal(bench.sets, 0);
    step_lines_close(&lines);
    tuner_bench_stop(&bench);
}

/* Another node, or the inside of a container: nobody is told, and the limit is still the command's. */
static void test_out_of_reach(void **state)
{
    struct fly_tuner_report report = {.size = sizeof report};
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner *tuner;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    setenv(STEP_PLACE_VARIABLE, "/dev/shm/flyball-steps-none:27:1", 1);
    tuner = make(&bench, 0);
    train(tuner);
    assert_int_equal(fly_tuner_report(tuner, &report), 0);
    assert_string_equal(fly_tuner_reason_name(report.reason), "steered");
    assert_non_null(strstr(report.text, "not to be reached"));
    assert_int_equal(bench.sets, 0);
    fly_tuner_free(tuner);
    unsetenv(STEP_PLACE_VARIABLE);
    tuner_bench_stop(&bench);
}

/* A variable that names nothing to write to is as good as none. */
static void test_tunes_by_itself(void **state)
{
    static const char *const values[] = {"", "no", "-1", "4000", "0x1", "3 "};
    struct tuner_profile profile;
    struct tuner_bench bench;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct fly_tuner *tuner;

        setenv(STEP_VARIABLE, values[i], 1);
        tuner = make(&bench, 0);
        assert_int_equal(fly_tuner_state(tuner), FLY_TUNER_SEARCHING);
        fly_tuner_free(tuner);
    }
    unsetenv(STEP_VARIABLE);
    tuner_bench_stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports_to_the_command),
        cmocka_unit_test(test_out_of_reach),
        cmocka_unit_test(test_tunes_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

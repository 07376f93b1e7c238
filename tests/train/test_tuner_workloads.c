/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning the workload profile, by the guarded knob, on emulated GPUs in virtual time. */
#include "knob_bench.h"

#include <glob.h>

#include "emulator/workload_profiles.h"
#include "train/tuner/workload_setting.h"

enum { SETTINGS = 8 /* none and the profiles of a B200 */ };

/* All of a step waits for the clock, so that it is as much slower as the profile says. */
static const struct training training = {800.0, 0.2, 1.0, 0.0, 0.0};

static struct fly_tuner_options options_for(enum fly_objective_kind kind, double max_slowdown)
{
    return (struct fly_tuner_options){.size = sizeof(struct fly_tuner_options),
                                      .meter = bench.meter,
                                      .turner = &workload_turner,
                                      .turner_data = &bench.turner,
                                      .knob = FLY_TUNER_PROFILE,
                                      .objective = {kind, 0.5, max_slowdown},
                                      .job_name = "job",
                                      .batch_size = 64};
}

static void request(unsigned gpu, const char *text)
{
    struct workload_set set;

    assert_true(workload_parse(text, &set));
    assert_int_equal(emulator_request_workloads(bench.machine.emulator, gpu, &set, NULL), 0);
}

static void check_requested(unsigned gpu, const char *expected)
{
    struct workload_set set = emulator_requested_workloads(bench.machine.emulator, gpu);
    char text[WORKLOAD_TEXT_MAX];

    assert_string_equal(workload_text(&set, text), expected);
}

/* Each setting is measured, whatever the others are; the best by its own figures is chosen. */
static void test_choice(void **state)
{
    static const struct {
        enum fly_objective_kind kind;
        double max_slowdown;
        int profile;
    } cases[] = {
        {FLY_OBJECTIVE_ENERGY, INFINITY, 1},                  /* MAX_Q: -8 % for 2 % */
        {FLY_OBJECTIVE_ENERGY, 1.012, 7},                     /* LLM_TRAINING: -5 % for 0.5 % */
        {FLY_OBJECTIVE_TIME, INFINITY, FLY_TUNER_NO_PROFILE}, /* of equals the first */
        {FLY_OBJECTIVE_COST, INFINITY, 7},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_tuner_options options;
        struct fly_tuner_point points[SETTINGS + 1];
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        start_model("b200", 2, &training, NULL);
        options = options_for(cases[i].kind, cases[i].max_slowdown);
        tuner = open_tuner(&options);
        report = settle(tuner);
        if (report.state != FLY_TUNER_SETTLED)
            fail_msg("%s: %s", fly_tuner_reason_name(report.reason), report.text);
        assert_int_equal(report.knob, FLY_TUNER_PROFILE);
        assert_int_equal(report.workload_profile, cases[i].profile);
        assert_int_equal(report.start_workload_profile, FLY_TUNER_NO_PROFILE);
        assert_true(isnan(report.limit_w) && isnan(report.ceiling_mhz));
        assert_int_equal(fly_tuner_points(tuner, points, COUNT(points)), SETTINGS);
        for (size_t place = 0; place < SETTINGS; place++) {
            int profile = fly_tuner_point_profile(tuner, place);

            assert_int_equal(points[place].mark, FLY_TUNER_VALID);
            assert_int_equal(points[place].bound, FLY_TUNER_BOUND_UNKNOWN);
            assert_true(isnan(points[place].limit_w) && isnan(points[place].ceiling_mhz));
            assert_int_equal(profile, place == 0 ? -1 : (int)workload_profiles[place - 1].id);
            if (place > 0) /* as slow as it is made */
                assert_true(
                    fabs(points[place].time_s / points[0].time_s * workload_profiles[place - 1].speed - 1.0) <
                    0.003);
        }
        assert_int_equal(fly_tuner_point_profile(tuner, SETTINGS), FLY_TUNER_NO_PROFILE);
        fly_tuner_free(tuner);
        check_requested(0, "none");
        check_requested(1, "none");
        stop();
    }
}

/* What was requested before goes back, also where that is no single profile, or differs. */
static void test_start(void **state)
{
    static const struct {
        const char *first, *second;
        int profile;
    } cases[] = {
        {"HPC", "HPC", 13},
        {"MAX_Q,HPC", "MAX_Q,HPC", FLY_TUNER_SEVERAL_PROFILES},
        {"MAX_Q", "none", FLY_TUNER_SEVERAL_PROFILES},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_tuner_options options;
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        start_model("b200", 2, &training, NULL);
        knob_close(bench.knob, NULL);
        request(0, cases[i].first);
        request(1, cases[i].second);
        bench.knob = knob_machine_open(&bench.machine);
        bench.turner.knob = bench.knob;
        options = options_for(FLY_OBJECTIVE_ENERGY, INFINITY);
        tuner = open_tuner(&options);
        report = settle(tuner);
        assert_int_equal(report.state, FLY_TUNER_SETTLED);
        assert_int_equal(report.start_workload_profile, cases[i].profile);
        assert_int_equal(report.workload_profile, 1);
        check_requested(1, "MAX_Q");
        fly_tuner_free(tuner);
        check_requested(0, cases[i].first);
        check_requested(1, cases[i].second);
        stop();
    }
}

static void test_another_program_wins(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;

    (void)state;
    start_model("b200", 1, &training, NULL);
    options = options_for(FLY_OBJECTIVE_ENERGY, INFINITY);
    options.check_every_steps = 50;
    tuner = open_tuner(&options);
    assert_int_equal(settle(tuner).workload_profile, 1);
    request(0, "COMPUTE");
    for (int i = 0; i < 400 && fly_tuner_state(tuner) != FLY_TUNER_STOPPED; i++)
        step(tuner);
    report = report_of(tuner);
    assert_int_equal(report.reason, FLY_TUNER_FOREIGN_CHANGE);
    assert_string_equal(report.text,
                        "another program changed the profile MAX_Q to COMPUTE; its value stands");
    fly_tuner_free(tuner);
    check_requested(0, "COMPUTE");
    stop();
}

/* A profile that breaks its promise gives way to none, and to no other profile. */
static void test_broken_promise(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;

    (void)state;
    start_model("b200", 1, &training, NULL);
    options = options_for(FLY_OBJECTIVE_ENERGY, 1.03);
    options.check_every_steps = 50;
    options.remeasure_distance_steps = 1000000;
    tuner = open_tuner(&options);
    assert_int_equal(settle(tuner).workload_profile, 1);
    bench.training.step_s *= 1.04;
    for (int i = 0; i < 2000 && report_of(tuner).backoffs == 0; i++)
        step(tuner);
    report = report_of(tuner);
    assert_int_equal(report.backoffs, 1);
    for (int i = 0; i < 100; i++)
        step(tuner);
    check_requested(0, "none");
    fly_tuner_free(tuner);
    stop();
}

static void check_refused(const struct fly_tuner_options *options, int code, const char *text)
{
    struct fly_tuner *tuner = NULL;
    struct fly_error error = {.text = ""};

    assert_int_equal(tuner_new(options, &bench.clock, &tuner, &error), code);
    check_contains(error.text, text);
}

static void test_refusals(void **state)
{
    const double limits[] = {500.0};
    struct fly_tuner_options options;

    (void)state;
    start_model("b200", 1, &training, NULL);
    options = options_for(FLY_OBJECTIVE_LOWEST_LIMIT, 1.05);
    check_refused(&options, FLY_EUSAGE, "profiles have no order");
    options = options_for(FLY_OBJECTIVE_ENERGY, INFINITY);
    options.limits_w = limits;
    options.limit_count = 1;
    check_refused(&options, FLY_EUSAGE, "the knob is 'profile'");
    stop();
    start_model("h200", 1, &training, NULL);
    options = options_for(FLY_OBJECTIVE_ENERGY, INFINITY);
    check_refused(&options, FLY_EUNSUPPORTED, "since Blackwell");
    stop();
}

/* A driver that refuses ends tuning, and training goes on. */
static void test_no_permission(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;

    (void)state;
    start_model("b200", 1, &training, "call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 no-permission\n");
    options = options_for(FLY_OBJECTIVE_ENERGY, INFINITY);
    tuner = open_tuner(&options);
    report = settle(tuner);
    assert_int_equal(report.reason, FLY_TUNER_SET_FAILED);
    check_contains(report.text, "the profile MAX_P could not be set: ");
    check_contains(report.text, "only root may");
    fly_tuner_free(tuner);
    stop();
}

/* What was measured is saved by name, and reused for profiles alone. */
static void test_saved(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;
    char pattern[KNOB_PATH_MAX + 16], text[8192] = "";
    glob_t found;
    FILE *file;

    (void)state;
    start_model("b200", 1, &training, NULL);
    options = options_for(FLY_OBJECTIVE_ENERGY, INFINITY);
    options.profile_directory = bench.machine.directory;
    for (int i = 0; i < 2; i++) {
        tuner = open_tuner(&options);
        report = settle(tuner);
        assert_int_equal(report.workload_profile, 1);
        assert_int_equal(report.reused, i == 1);
        fly_tuner_free(tuner);
    }
    snprintf(pattern, sizeof pattern, "%s/*.json", bench.machine.directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    file = fopen(found.gl_pathv[0], "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    globfree(&found);
    check_contains(text, "\"knob\": \"profile\"");
    check_contains(text, "\"profile\": \"none\"");
    check_contains(text, "\"profile\": \"LLM_TRAINING\"");
    assert_null(strstr(text, "limit_w"));
    options.turner = &knob_turner;
    options.knob = FLY_TUNER_POWER_LIMIT;
    tuner = open_tuner(&options);
    assert_false(report_of(tuner).reused);
    fly_tuner_free(tuner);
    stop();
}

static void test_words(void **state)
{
    char text[WORKLOAD_SETTING_MAX];

    (void)state;
    assert_string_equal(fly_tuner_knob_name(FLY_TUNER_PROFILE), "profile");
    assert_string_equal(fly_tuner_knob_unit(FLY_TUNER_PROFILE), "");
    for (int profile = FLY_TUNER_SEVERAL_PROFILES; profile < WORKLOADS_MAX; profile++)
        assert_int_equal(workload_of_setting(workload_setting(profile)), profile);
    assert_true(workload_setting(FLY_TUNER_NO_PROFILE) > workload_setting(0));
    assert_string_equal(workload_setting_text(workload_setting(254), text), "254");
    assert_string_equal(workload_setting_text(workload_setting(20), text), "TRAINING");
    assert_string_equal(workload_setting_text(workload_setting(FLY_TUNER_NO_PROFILE), text), "none");
    assert_string_equal(workload_setting_text(workload_setting(FLY_TUNER_SEVERAL_PROFILES), text), "several");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_another_program_wins),
        cmocka_unit_test(test_broken_promise),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A session that follows the grid: attempts, tries, faults, and what the log gets. */
#include "carbon_day.h"

/* Another attempt: time that the first one took counts, and so does the work that it did. */
static void test_attempts(void **state)
{
    static const struct {
        double earlier; /* time of an epoch of the first attempt, as a slowdown */
        bool behind;
    } cases[] = {{1.0, false}, {1.3, true}};
    struct scene scene;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct taken taken;
        double earlier_s;

        day_begin(&scene);
        know_profile(&scene, 200.0);
        scene.options.samples_per_epoch = 0;
        earlier_s = cases[i].earlier * fastest_s(&scene, 5 * EPOCH_STEPS);
        scene.fake.proposals[0].attempt = 2;
        scene.fake.proposals[0].epochs_done = 5;
        /* An evaluation takes a minute, and is no step. */
        scene.fake.proposals[0].time_s = earlier_s + 5 * 60.0;
        scene_open(&scene);
        fly_session_resumed(scene.session, 5);
        taken = train(&scene, 5);
        scene_end(&scene);
        if (cases[i].behind) {
            check_double(taken.last_w, 300.0);
            assert_true(taken.time_s < 1.03 * fastest_s(&scene, 5 * EPOCH_STEPS));
        } else {
            assert_true(taken.time_s > 1.12 * fastest_s(&scene, 5 * EPOCH_STEPS));
            assert_true(earlier_s + taken.time_s <= 1.12 * fastest_s(&scene, 10 * EPOCH_STEPS));
        }
    }
}

/* A moment to finish by stretches the last try alone. */
static void test_moment(void **state)
{
    struct scene scene;

    (void)state;
    for (int last = 0; last < 2; last++) {
        double most_s, ended_s;
        struct taken taken;

        day_begin(&scene);
        most_s = 1.35 * fastest_s(&scene, 10 * EPOCH_STEPS);
        know_profile(&scene, 200.0);
        scene.fake.proposals[0].last_try = last;
        carbon.finish_by_unix_s = BEGIN_S + (int64_t)most_s + 10 * 60;
        scene_open(&scene);
        taken = train(&scene, 10);
        ended_s = (double)dated(bench_clock.state).ns * 1e-9;
        scene_end(&scene);
        /* A step lasts half a minute. */
        assert_true(ended_s <= (double)carbon.finish_by_unix_s + 30.0);
        assert_true(last || taken.time_s <= 1.12 / 1.35 * most_s);
        assert_true(!last || taken.time_s > 1.2 / 1.35 * most_s);
    }
}

/* What another program sets stays, between two epochs too; and so does what cannot be set any more. */
static void test_foreign_limit(void **state)
{
    struct taken taken = {0};
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene_open(&scene);
    (void)train(&scene, 3);
    fly_session_epoch_begin(scene.session);
    emulator_set_limit_w(scene.bench.emulator, 0, 275.0, NULL);
    for (int i = 0; i < 20 * EPOCH_STEPS; i++)
        step(&scene, &taken);
    check_stands(&taken, 275.0);
    check_contains(carbon_of(&scene).reason, "not ours any more");
    check_contains(status_of(&scene).limit_text, "another program changed the limit to 275 W");
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene.session = NULL;
    check_double(tuner_bench_limit_w(&scene.bench), 275.0);
    scene_end(&scene);
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene_open(&scene);
    scene.bench.sets_until_failing = 1;
    taken = train(&scene, 5);
    assert_true(taken.limits <= 2);
    check_contains(status_of(&scene).limit_text, "no permission");
    scene_end(&scene);
}

static bool has_account(void)
{
    return spool_files(".jsonl") > 0 || spool_files(".json") > 0;
}

/* With FLYBALL_DISABLE=1 nothing is opened; without the options there is nothing to tell; limits are left. */
static void test_nothing(void **state)
{
    struct fly_carbon_report report = {.size = sizeof report};
    struct taken taken;
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    setenv("FLYBALL_DISABLE", "1", 1);
    scene_open(&scene);
    unsetenv("FLYBALL_DISABLE");
    taken = train(&scene, 1);
    check_stands(&taken, 300.0);
    assert_int_equal(fly_session_carbon(scene.session, &report), FLY_ESTATE);
    assert_false(has_account());
    scene_end(&scene);
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.options.leave_limits = true;
    scene_open(&scene);
    taken = train(&scene, 3);
    check_stands(&taken, 300.0);
    check_contains(carbon_of(&scene).reason, "no power limit is turned here");
    scene_end(&scene);
    day_begin(&scene);
    scene.options.carbon = NULL;
    scene_open(&scene);
    assert_int_equal(fly_session_carbon(scene.session, &report), FLY_ESTATE);
    report.size--;
    assert_int_equal(fly_session_carbon(scene.session, &report), FLY_EUSAGE);
    scene_end(&scene);
}

/* Options that cannot be are refused before anything is opened. */
static void test_refused(void **state)
{
    static const struct {
        const char *expected;
        struct fly_carbon_options options;
    } cases[] = {
        {"carbon.size", {.size = 1}},
        {"host power", {.size = sizeof carbon, .host_w = -1.0}},
        {"PUE", {.size = sizeof carbon, .pue = 0.5}},
        {"neither a source", {.size = sizeof carbon}},
    };
    struct fly_error error;
    struct scene scene;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        day_begin(&scene);
        carbon = cases[i].options;
        if (i > 0 && i < 3)
            carbon.source = "constant:300";
        assert_int_equal(session_new(&scene.options, &scene.parts, &scene.session, &error), FLY_EUSAGE);
        check_contains(error.text, cases[i].expected);
        assert_int_equal(scene.fake.calls[FAKE_DEFINE], 0);
        tuner_bench_stop(&scene.bench);
    }
}

/* Each try has a plan of its own; the report of the last one stays until the next. */
static void test_tries(void **state)
{
    struct taken taken;
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.options.target = FLY_TARGET_AT_LEAST;
    scene.fake.proposals[0].stops_at_target = true;
    scene.fake.answers[1] = (struct job_answered){.answer = JOB_STOP, .stop = JOB_STOP_COST, .epochs = 2};
    scene.fake.answers[0] = (struct job_answered){.epochs = 10};
    scene.fake.answer_count = 2;
    scene_open(&scene);
    (void)train(&scene, 2);
    scene.fake.answer_count = 0;
    assert_true(fly_session_try_again(scene.session));
    taken = train(&scene, 10);
    assert_true(taken.limits > 3);
    assert_int_equal(scene.fake.report_count, 12);
    check_close(scene.fake.reports[11].energy_j, taken.energy_j, 0.02);
    scene_end(&scene);
}

/* A job that counts grams or money has its grid in the log, and the reference with each report. */
static void test_reference(void **state)
{
    static const enum fly_objective_kind kinds[] = {FLY_OBJECTIVE_CARBON, FLY_OBJECTIVE_MONEY,
                                                    FLY_OBJECTIVE_ENERGY};
    struct scene scene;

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        day_begin(&scene);
        know_profile(&scene, 200.0);
        carbon.price = "constant:0.25";
        scene.options.objective.kind = kinds[i];
        scene_open(&scene);
        (void)train(&scene, 2);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
        if (i == 2)
            assert_true(isnan(scene.fake.reports[1].reference_per_kwh));
        else
            check_close(scene.fake.reports[1].reference_per_kwh, i == 0 ? 300.0 : 0.25, 0.05);
        if (i < 2)
            check_close(scene.fake.ends[0].reference_per_kwh, i == 0 ? 300.0 : 0.25, 0.05);
        scene_end(&scene);
    }
    day_begin(&scene);
    scene.options.carbon = NULL;
    scene.options.objective.kind = FLY_OBJECTIVE_CARBON;
    assert_int_equal(session_new(&scene.options, &scene.parts, &scene.session, NULL), FLY_EUSAGE);
    tuner_bench_stop(&scene.bench);
}

/* One file for each training, with what this attempt drew and the steps that it began. */
static void test_account(void **state)
{
    struct ledger_content content;
    double energy_j = 0.0, steps = 0.0, limits_s = 0.0;
    struct taken taken;
    struct scene scene;
    struct arena arena;
    size_t count;
    char **paths;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.fake.proposals[0].epochs_done = 5;
    scene.fake.proposals[0].time_s = fastest_s(&scene, 5 * EPOCH_STEPS);
    scene_open(&scene);
    fly_session_resumed(scene.session, 5);
    taken = train(&scene, 5);
    scene_end(&scene);
    arena_init(&arena, 1 << 24);
    assert_int_equal(carbon_ledger_list(spool, &arena, &paths, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(carbon_ledger_read(paths[0], &arena, &content, NULL), 0);
    assert_string_equal(content.head.job, "job");
    assert_string_equal(content.head.run, "run-1");
    assert_string_equal(content.head.program, "session");
    assert_string_equal(content.head.sources[CARBON_INTENSITY], grid);
    check_double(content.head.max_slowdown, 1.12);
    assert_int_equal(content.point_count, scene.profile.count);
    for (size_t i = 0; i < content.slice_count; i++) {
        const struct energy_slice *slice = &content.slices[i];

        energy_j += slice->gpu_j;
        steps += slice->steps;
        limits_s += isnan(slice->limit_w) ? 0.0 : slice->end_s - slice->start_s;
    }
    assert_false(content.torn);
    check_double(steps, 5.0 * EPOCH_STEPS);
    check_close(energy_j, taken.energy_j, 0.02);
    check_close(limits_s, taken.time_s, 0.02);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_attempts, forget_grid),
        cmocka_unit_test_teardown(test_moment, forget_grid),
        cmocka_unit_test_teardown(test_foreign_limit, forget_grid),
        cmocka_unit_test_teardown(test_nothing, forget_grid),
        cmocka_unit_test_teardown(test_refused, forget_grid),
        cmocka_unit_test_teardown(test_tries, forget_grid),
        cmocka_unit_test_teardown(test_reference, forget_grid),
        cmocka_unit_test_teardown(test_account, forget_grid),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

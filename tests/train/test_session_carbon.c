/* SPDX-License-Identifier: Apache-2.0 */
/* A session that follows the grid: when, and how. */
#include "carbon_day.h"

/* The limit falls when the grid is dirty, the bound is kept, and the log has what was measured. */
static void test_follows(void **state)
{
    struct taken fixed, taken;
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.options.carbon = NULL;
    scene_open(&scene);
    fixed = train(&scene, 10);
    scene_end(&scene);
    check_stands(&fixed, 200.0);
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene_open(&scene);
    taken = train(&scene, 10);
    assert_true(taken.limits > 3);
    assert_int_equal(carbon_of(&scene).changes + 1, taken.limits);
    check_close(scene.fake.reports[9].energy_j, taken.energy_j, 0.02);
    assert_int_equal(scene.fake.calls[FAKE_PROFILE], 0);
    scene_end(&scene);
    assert_true(clean_w(&taken) > dirty_w(&taken) + 20.0);
    assert_true(taken.time_s <= 1.12 * fastest_s(&scene, 10 * EPOCH_STEPS));
    assert_true(taken.kwh_g < 0.9 * fixed.kwh_g);
}

/* Without a bound in the objective it takes as long as the log's choice, which was accepted. */
static void test_accepted_time(void **state)
{
    struct taken taken;
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 150.0);
    scene.options.objective.max_slowdown = INFINITY;
    scene_open(&scene);
    taken = train(&scene, 10);
    scene_end(&scene);
    assert_true(clean_w(&taken) > dirty_w(&taken) + 20.0);
    assert_true(taken.time_s > 1.08 * fastest_s(&scene, 10 * EPOCH_STEPS));
    assert_true(taken.time_s <=
                4000.0 * 100.0 *
                    tuner_profile_truth(&scene.profile, tuner_profile_find(&scene.profile, 150.0)).time_s);
}

/* What is measured first is followed as soon as the log has chosen, or cannot be asked. */
static void test_measured(void **state)
{
    struct scene scene;

    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct taken taken;

        day_begin(&scene);
        scene.fake.proposals[0].wants_profile = true;
        scene.fake.proposals[0].stops_at_target = false;
        scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 10};
        if (!asked)
            fake_jobs_fail(&scene.fake, FAKE_PROFILE, FLY_EUNREACHABLE, 1, 1);
        scene.options.profile_steps = 10;
        scene.options.warmup_steps = 2;
        scene_open(&scene);
        assert_string_equal(carbon_of(&scene).reason,
                            "the power profile of this batch size is not whole yet");
        (void)train(&scene, 1);
        check_contains(carbon_of(&scene).reason, "grid");
        taken = train(&scene, 9);
        assert_int_equal(scene.fake.calls[FAKE_PROFILE], asked ? 1 : 2);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
        scene_end(&scene);
        assert_true(clean_w(&taken) > dirty_w(&taken) + 20.0);
    }
}

/* Where nothing is known of the grid the log's choice stands; where it is the same all the time, the best
 * single limit within the bound. */
static void test_without_plan(void **state)
{
    static const struct {
        const char *source; /* NULL: a file that ended weeks ago */
        double limit_w;
        const char *reason, *text;
    } cases[] = {
        {NULL, 275.0, "static limit", ""},
        {"constant:300", 175.0, "static limit", ""},
        {"/nowhere/grid.csv", 275.0, "no account", "/nowhere/grid.csv"},
    };
    struct scene scene;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct taken taken;

        day_begin(&scene);
        write_grid(60);
        know_profile(&scene, 275.0);
        if (cases[i].source != NULL)
            carbon.source = cases[i].source;
        scene_open(&scene);
        taken = train(&scene, 2);
        check_contains(carbon_of(&scene).text, cases[i].text);
        check_stands(&taken, cases[i].limit_w);
        scene_end(&scene);
    }
}

/* What the log measures others by, and what a user pinned, stays. */
static void test_stays(void **state)
{
    static const struct {
        enum reason reason;
        uint32_t batch_size;
        double limit_w;
        enum fly_objective_kind objective;
        const char *says;
    } cases[] = {
        {REASON_CONTROL, 64, 300.0, FLY_OBJECTIVE_ENERGY, "compares all others"},
        {REASON_BEST_SEEN, 64, 300.0, FLY_OBJECTIVE_ENERGY, "compares all others"},
        {REASON_PINNED, 32, 175.0, FLY_OBJECTIVE_ENERGY, "pinned"},
        {REASON_BEST_SEEN, 32, 275.0, FLY_OBJECTIVE_TIME, "names one limit"},
        {REASON_BEST_SEEN, 32, 175.0, FLY_OBJECTIVE_LOWEST_LIMIT, "names one limit"},
    };
    struct scene scene;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct taken taken;

        day_begin(&scene);
        know_profile(&scene, cases[i].limit_w);
        scene.options.objective.kind = cases[i].objective;
        scene.fake.proposals[0].reason = cases[i].reason;
        scene.fake.proposals[0].batch_size = cases[i].batch_size;
        scene_open(&scene);
        taken = train(&scene, 3);
        check_contains(carbon_of(&scene).reason, cases[i].says);
        assert_true(isnan(carbon_of(&scene).limit_w));
        check_stands(&taken, cases[i].limit_w);
        scene_end(&scene);
    }
}

/* Points of limits that cannot be set, of no known step, or none at all. */
static void test_no_profile(void **state)
{
    struct scene scene;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct job_proposal *proposal;
        struct taken taken;

        day_begin(&scene);
        proposal = &scene.fake.proposals[0];
        know_profile(&scene, 200.0);
        if (i == 0)
            proposal->known_count = 0;
        if (i == 1)
            proposal->known_units_per_epoch = 1.0;
        for (size_t j = 0; i == 2 && j < proposal->known_count; j++)
            proposal->known[j].limit_w += 1.0;
        if (i == 1)
            scene.options.samples_per_epoch = 0;
        scene_open(&scene);
        taken = train(&scene, 2);
        check_contains(carbon_of(&scene).reason, "no power profile");
        check_stands(&taken, 200.0);
        scene_end(&scene);
    }
}

/* Points of an epoch are worth as much as those of a step, where the program says how long an epoch is. */
static void test_points_of_epochs(void **state)
{
    struct taken steps, epochs;
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene_open(&scene);
    steps = train(&scene, 5);
    scene_end(&scene);
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.fake.proposals[0].known_units_per_epoch = 1.0;
    for (size_t i = 0; i < scene.fake.proposals[0].known_count; i++)
        scene.fake.proposals[0].known[i].time_s *= EPOCH_STEPS;
    scene_open(&scene);
    epochs = train(&scene, 5);
    scene_end(&scene);
    assert_true(steps.limits > 1);
    assert_int_equal(steps.limits, epochs.limits);
    check_close(epochs.kwh_g, steps.kwh_g, 1e-9);
}

/* The target is expected after what other trainings took; beyond that an epoch at a time. */
static void test_target(void **state)
{
    struct taken taken = {0};
    struct scene scene;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.options.target = FLY_TARGET_AT_LEAST;
    scene.options.max_epochs = 100;
    scene.fake.proposals[0].stops_at_target = true;
    scene.fake.proposals[0].epochs = 100;
    scene.fake.proposals[0].expected_epochs = 6.5;
    scene_open(&scene);
    for (int i = 0; i < 9; i++)
        epoch(&scene, 0.1, &taken);
    scene_end(&scene);
    assert_true(taken.limits > 3);
    assert_true(taken.time_s <= 1.13 * fastest_s(&scene, 9 * EPOCH_STEPS));
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.options.target = FLY_TARGET_AT_LEAST;
    scene.fake.proposals[0].stops_at_target = true;
    scene.fake.proposals[0].expected_epochs = NAN;
    scene_open(&scene);
    taken = train(&scene, 3);
    check_contains(carbon_of(&scene).reason, "how many steps are left is not known");
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_follows, forget_grid),
        cmocka_unit_test_teardown(test_accepted_time, forget_grid),
        cmocka_unit_test_teardown(test_measured, forget_grid),
        cmocka_unit_test_teardown(test_without_plan, forget_grid),
        cmocka_unit_test_teardown(test_stays, forget_grid),
        cmocka_unit_test_teardown(test_no_profile, forget_grid),
        cmocka_unit_test_teardown(test_points_of_epochs, forget_grid),
        cmocka_unit_test_teardown(test_target, forget_grid),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

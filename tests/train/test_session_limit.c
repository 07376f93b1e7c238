/* SPDX-License-Identifier: Apache-2.0 */
/* The power limit of a session: measured, chosen by the log, held and put back. */
#include "session_scene.h"

/* A limit that is known is set, held, looked after, and put back. */
static void test_holds_limit(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    emulator_set_limit_w(scene.bench.emulator, 0, 275.0, NULL);
    scene.fake.proposals[0].limit_w = 150.0;
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    check_double(tuner_bench_limit_w(&scene.bench), 150.0);
    check_double(status_of(&scene).limit_w, 150.0);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    check_double(tuner_bench_limit_w(&scene.bench), 275.0);
    scene_open(&scene);
    emulator_set_limit_w(scene.bench.emulator, 0, 200.0, NULL);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    check_contains(status_of(&scene).limit_text, "another program changed the limit to 200 W");
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    check_double(tuner_bench_limit_w(&scene.bench), 200.0);
    scene.bench.sets_until_failing = 0;
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    check_contains(status_of(&scene).limit_text, "no permission");
    assert_true(isnan(status_of(&scene).limit_w));
    scene_end(&scene);
}

/* No step comes for so long, in which somebody looks. */
static void idle(struct scene *scene, double duration_s)
{
    idle_turner_look(&scene->session->limit.idle);
    tuner_bench_pass(&scene->bench, duration_s);
    idle_turner_look(&scene->session->limit.idle);
}

/* The limit is put back while no step comes: while it is held, while it is searched, and between both. */
static void test_idle(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].limit_w = 150.0;
    scene_open(&scene);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
        check_double(tuner_bench_limit_w(&scene.bench), 150.0);
        check_double(status_of(&scene).limit_w, 150.0);
        idle(&scene, 3600.0);
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
        check_double(status_of(&scene).limit_w, 300.0);
        assert_int_equal(fly_session_report(scene.session, 0.1), FLY_GO_ON);
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
    }
    emulator_set_limit_w(scene.bench.emulator, 0, 275.0, NULL);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    check_double(tuner_bench_limit_w(&scene.bench), 150.0);
    assert_string_equal(status_of(&scene).limit_text, "");
    fly_session_give_back(scene.session);
    check_double(tuner_bench_limit_w(&scene.bench), 275.0);
    scene_end(&scene);

    scene_begin(&scene);
    scene.fake.proposals[0].wants_profile = true;
    scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 100};
    scene.options.max_epochs = 100;
    scene_open(&scene);
    for (unsigned i = 0; scene.fake.calls[FAKE_PROFILE] == 0 || scene.fake.profile.partial; i++) {
        assert_true(i < 90);
        assert_int_equal(train_epoch(&scene, 37, 0.1), FLY_GO_ON);
        idle(&scene, 3600.0);
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
    }
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    check_double(tuner_bench_limit_w(&scene.bench), 225.0);
    scene_end(&scene);
}

/* What another program has set meanwhile stays. */
static void test_idle_foreign(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].limit_w = 150.0;
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    emulator_set_limit_w(scene.bench.emulator, 0, 200.0, NULL);
    idle(&scene, 3600.0);
    check_double(tuner_bench_limit_w(&scene.bench), 200.0);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    check_double(tuner_bench_limit_w(&scene.bench), 200.0);
    check_contains(status_of(&scene).limit_text, "another program");
    scene_end(&scene);
}

/* Measured so far. */
static struct fly_power_point parts[10];

static void check_profile(const struct scene *scene, double units)
{
    assert_int_equal(scene->fake.calls[FAKE_PROFILE], 1);
    assert_true(scene->fake.profile.point_count >= 3);
    check_double(scene->fake.profile.units_per_epoch, units);
    for (size_t i = 0; i < scene->fake.profile.point_count; i++) {
        const struct fly_power_point *point = &scene->fake.points[i];
        struct fly_power_point truth =
            tuner_profile_truth(&scene->profile, tuner_profile_find(&scene->profile, point->limit_w));

        assert_true(fabs(point->power_w / truth.power_w - 1.0) < 0.02);
        assert_true(fabs(point->time_s / truth.time_s - 1.0) < 0.02);
    }
}

/* The profile is measured while training runs; the log chooses, as soon as it can be told how long an epoch
 * is. */
static void test_profile(void **state)
{
    struct scene scene;

    (void)state;
    for (int known = 0; known < 2; known++) {
        scene_begin(&scene);
        scene.fake.proposals[0].wants_profile = true;
        scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 7};
        scene.options.samples_per_epoch = known ? 40000 : 0;
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 800, 0.1), FLY_GO_ON);
        assert_string_equal(status_of(&scene).limit_text, "");
        check_profile(&scene, known ? 1250.0 : 800.0);
        check_double(tuner_bench_limit_w(&scene.bench), 225.0);
        assert_int_equal(train_epoch(&scene, 10, 0.1), FLY_GO_ON);
        check_double(tuner_bench_limit_w(&scene.bench), 225.0);
        assert_int_equal(scene.fake.calls[FAKE_PROFILE], 1);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
        scene_end(&scene);
    }
}

/* A GPU without work is left alone, and the log hears of no profile; with work one is measured. */
static void test_no_work(void **state)
{
    struct tuner_profile idle;
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    idle = *scene.bench.profile;
    for (size_t i = 0; i < idle.count; i++)
        idle.power_w[i][0] = 0.0;
    scene.fake.proposals[0].wants_profile = true;
    scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 7};
    scene_open(&scene);
    for (int epoch = 0; epoch < 3; epoch++) {
        const struct tuner_profile *busy = scene.bench.profile;

        if (epoch < 2)
            scene.bench.profile = &idle;
        assert_int_equal(train_epoch(&scene, 800, 0.1), FLY_GO_ON);
        assert_string_equal(status_of(&scene).limit_text, epoch < 2 ? "GPU 0 had no work" : "");
        assert_int_equal(scene.fake.calls[FAKE_PROFILE], epoch == 2);
        check_double(tuner_bench_limit_w(&scene.bench), epoch < 2 ? 300.0 : 225.0);
        scene.bench.profile = busy;
    }
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene.session = NULL;
    check_double(tuner_bench_limit_w(&scene.bench), 300.0);
    scene_end(&scene);
}

/* Each training is too short for the whole profile, and goes on where the one before had to end. */
static void test_profile_in_parts(void **state)
{
    size_t known = 0, trainings = 0;
    struct scene scene;

    (void)state;
    for (bool whole = false; !whole; trainings++) {
        struct job_proposal *proposal;

        assert_true(trainings < 12);
        scene_begin(&scene);
        proposal = &scene.fake.proposals[0];
        proposal->wants_profile = true;
        proposal->known_count = known;
        memcpy(proposal->known, parts, known * sizeof parts[0]);
        scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 7};
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 150, 0.1), FLY_GO_ON);
        assert_int_equal(scene.fake.calls[FAKE_PROFILE], 1);
        whole = !scene.fake.profile.partial;
        assert_true(scene.fake.profile.point_count >= known + !whole);
        if (whole) {
            check_profile(&scene, 150.0);
            check_double(tuner_bench_limit_w(&scene.bench), 225.0);
        }
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        /* The limit on trial may have been measured for long enough. */
        assert_true(scene.fake.calls[FAKE_PROFILE] <= (whole ? 1 : 2));
        known = scene.fake.profile.point_count;
        assert_true(known <= COUNT(parts));
        memcpy(parts, scene.fake.points, known * sizeof parts[0]);
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
        scene.session = NULL;
        scene_end(&scene);
    }
    assert_true(trainings >= 2);
}

/* Trainings too short for a single limit's window: each still measures one, and the profile becomes whole. */
static void test_profile_of_short_trainings(void **state)
{
    size_t known = 0, trainings = 0;
    struct scene scene;

    (void)state;
    for (bool whole = false; !whole; trainings++) {
        struct job_proposal *proposal;

        assert_true(trainings < 12);
        scene_begin(&scene);
        proposal = &scene.fake.proposals[0];
        proposal->wants_profile = true;
        proposal->known_count = known;
        memcpy(proposal->known, parts, known * sizeof parts[0]);
        scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 7};
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 35, 0.1), FLY_GO_ON);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
        whole = scene.fake.calls[FAKE_PROFILE] > 0 && !scene.fake.profile.partial;
        if (!whole) {
            assert_int_equal(scene.fake.profile.point_count, known + 1);
            for (size_t i = 0; i <= known; i++) {
                struct fly_power_point truth = tuner_profile_truth(
                    &scene.profile, tuner_profile_find(&scene.profile, scene.fake.points[i].limit_w));

                assert_true(fabs(scene.fake.points[i].power_w / truth.power_w - 1.0) < 0.05);
                assert_true(fabs(scene.fake.points[i].time_s / truth.time_s - 1.0) < 0.05);
            }
            known = scene.fake.profile.point_count;
            memcpy(parts, scene.fake.points, known * sizeof parts[0]);
        }
        scene_end(&scene);
    }
    assert_true(known >= 3);
}

/* What is known already of other limits than these is left out; nothing left to measure is measured at once.
 */
static void test_known_profile(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].wants_profile = true;
    for (size_t i = 0; i < COUNT(parts); i++)
        parts[i] = (struct fly_power_point){i == 0 ? 17.0 : 75.0 + 25.0 * (double)i, 90.0, 0.1};
    memcpy(scene.fake.proposals[0].known, parts, sizeof parts);
    scene.fake.proposals[0].known_count = COUNT(parts);
    scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 7};
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 3, 0.1), FLY_GO_ON);
    assert_int_equal(scene.fake.calls[FAKE_PROFILE], 1);
    assert_false(scene.fake.profile.partial);
    assert_int_equal(scene.fake.profile.point_count, COUNT(parts) - 1);
    check_double(tuner_bench_limit_w(&scene.bench), 225.0);
    scene_end(&scene);
}

/* Profiles of other batch sizes show which limits need not be measured; the choice is the same. */
static void test_profile_by_others(void **state)
{
    const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
    size_t counts[2], limits = 0;

    (void)state;
    for (size_t told = 0; told < 2; told++) {
        struct job_proposal *proposal;
        struct scene scene;
        bool best = false;

        scene_begin(&scene);
        proposal = &scene.fake.proposals[0];
        proposal->wants_profile = true;
        limits = scene.profile.count;
        for (size_t i = 0; told > 0 && i < 2 * limits; i++) {
            struct fly_power_point truth = tuner_profile_truth(&scene.profile, limits - 1 - i % limits);

            proposal->others[proposal->other_count++] =
                (struct job_other_point){.batch_size = i < limits ? 16 : 64,
                                         .limit_w = truth.limit_w,
                                         .power_w = 0.9 * truth.power_w,
                                         .time_s = (i < limits ? 0.6 : 1.8) * truth.time_s};
        }
        scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 7};
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 800, 0.1), FLY_GO_ON);
        check_profile(&scene, 800.0);
        counts[told] = scene.fake.profile.point_count;
        for (size_t i = 0; i < counts[told]; i++)
            best |= scene.fake.points[i].limit_w == tuner_profile_best_w(&scene.profile, &energy);
        assert_true(best);
        check_double(scene.fake.points[0].limit_w, scene.profile.limit_w[0]);
        scene_end(&scene);
    }
    assert_true(counts[1] < counts[0]);
    assert_true(2 * counts[1] <= limits);
}

/* The log cannot be asked: the tuner's own choice stands, and the profile is kept. */
static void test_profile_kept(void **state)
{
    const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].wants_profile = true;
    fake_jobs_fail(&scene.fake, FAKE_PROFILE, FLY_EUNREACHABLE, 1, 1);
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 800, 0.1), FLY_GO_ON);
    check_double(tuner_bench_limit_w(&scene.bench), tuner_profile_best_w(&scene.profile, &energy));
    check_double(status_of(&scene).limit_w, tuner_profile_best_w(&scene.profile, &energy));
    assert_int_equal(status_of(&scene).kept, 2);
    assert_int_equal(train_epoch(&scene, 800, 0.1), FLY_GO_ON);
    assert_int_equal(status_of(&scene).kept, 0);
    assert_int_equal(scene.fake.calls[FAKE_PROFILE], 2);
    scene_end(&scene);
    check_double(scene.fake.profile.units_per_epoch, 800.0);
}

/* Not one epoch fits: training is told at its next step. */
static void test_no_epoch_fits(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].wants_profile = true;
    scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 0};
    scene.options.samples_per_epoch = 40000;
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 5000, 0.1), FLY_STOP);
    assert_int_equal(fly_session_report(scene.session, 0.5), FLY_STOP);
    assert_int_equal(scene.fake.report_count, 0);
    scene.fake.proposals[0].wants_profile = false;
    assert_true(fly_session_try_again(scene.session));
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_REFUSED);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    scene_end(&scene);
}

/* The profile was there only after epochs had ended: if these were all, training is told at its next step. */
static void test_epochs_are_spent(void **state)
{
    struct scene scene;

    (void)state;
    for (uint32_t epochs = 0; epochs < 3; epochs++) {
        scene_begin(&scene);
        scene.fake.proposals[0].wants_profile = true;
        scene.fake.proposals[0].known_units_per_epoch = 900.0;
        scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = epochs};
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 20, 0.1), FLY_GO_ON);
        assert_int_equal(train_epoch(&scene, 5000, 0.1), epochs < 2 ? FLY_STOP : FLY_GO_ON);
        assert_int_equal(scene.fake.report_count, epochs < 2 ? 1 : 2);
        check_double(scene.fake.profile.units_per_epoch, 900.0);
        assert_int_equal(fly_session_try_again(scene.session), epochs < 2);
        if (epochs < 2)
            assert_int_equal(scene.fake.ends[0].outcome, TRIAL_STOPPED);
        scene_end(&scene);
    }
}

/* The profile is there as its first epoch ends: then the report's answer counts. */
static void test_no_epoch_fits_at_its_end(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].wants_profile = true;
    scene.fake.choice = (struct job_choice){.limit_w = 225.0, .epochs = 0};
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 800, 0.1), FLY_GO_ON);
    assert_int_equal(scene.fake.report_count, 1);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    scene_end(&scene);
}

static void test_leaves_limits(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.options.leave_limits = true;
    scene.fake.proposals[0].limit_w = 150.0;
    scene_open(&scene);
    assert_int_equal(scene.fake.question.hardware.limit_count, 0);
    check_double(scene.fake.question.hardware.max_power_w, 300.0);
    assert_int_equal(train_epoch(&scene, 5, 0.1), FLY_GO_ON);
    assert_int_equal(scene.bench.sets, 0);
    assert_string_equal(status_of(&scene).limit_text, "");
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_holds_limit, forget),
        cmocka_unit_test_teardown(test_idle, forget),
        cmocka_unit_test_teardown(test_idle_foreign, forget),
        cmocka_unit_test_teardown(test_profile, forget),
        cmocka_unit_test_teardown(test_no_work, forget),
        cmocka_unit_test_teardown(test_profile_in_parts, forget),
        cmocka_unit_test_teardown(test_known_profile, forget),
        cmocka_unit_test_teardown(test_profile_kept, forget),
        cmocka_unit_test_teardown(test_profile_by_others, forget),
        cmocka_unit_test_teardown(test_profile_of_short_trainings, forget),
        cmocka_unit_test_teardown(test_no_epoch_fits, forget),
        cmocka_unit_test_teardown(test_epochs_are_spent, forget),
        cmocka_unit_test_teardown(test_no_epoch_fits_at_its_end, forget),
        cmocka_unit_test_teardown(test_leaves_limits, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

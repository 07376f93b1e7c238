/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller that drives a training asks of its session, and tells it. */
#include "session_scene.h"

static void test_over_by_an_answer(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.answers[0] = (struct job_answered){.epochs = 10};
    scene.fake.answers[1] = (struct job_answered){.answer = JOB_REACHED, .stop = JOB_STOP_TARGET};
    scene.fake.answer_count = 2;
    scene_open(&scene);
    assert_false(fly_session_is_over(scene.session));
    (void)train_epoch(&scene, 2, 0.5);
    assert_false(fly_session_is_over(scene.session));
    (void)train_epoch(&scene, 2, 0.95);
    assert_true(fly_session_is_over(scene.session));
    fly_session_training_ended(scene.session); /* it did already */
    assert_int_equal(status_of(&scene).answer, FLY_REACHED);
    scene_end(&scene);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_REACHED);
}

/* The log refuses a sum that is smaller than the one before, also at the end. */
static void test_energy_never_goes_back(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    (void)train_epoch(&scene, 2, 0.5);
    check_double(scene.session->energy_most_j, scene.fake.reports[0].energy_j);
    scene.session->energy_most_j = 1e9;
    (void)train_epoch(&scene, 2, 0.95);
    scene_end(&scene);
    check_double(scene.fake.reports[1].energy_j, 1e9);
    check_double(scene.fake.ends[0].energy_j, 1e9);
}

/* It is what came before the first step, not before an epoch that still had to load its data. */
static void test_start_up(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    tuner_bench_pass(&scene.bench, 3.0);
    fly_session_epoch_begin(scene.session);
    tuner_bench_pass(&scene.bench, 1.0);
    (void)train_epoch(&scene, 2, 0.5);
    (void)train_epoch(&scene, 2, 0.95);
    scene_end(&scene);
    for (int i = 0; i < 2; i++) {
        check_same(scene.fake.reports[i].startup_time_s, 4.0, 1e-6);
        assert_true(scene.fake.reports[i].startup_energy_j > 0.0);
        check_double(scene.fake.reports[i].startup_energy_j, scene.fake.reports[0].startup_energy_j);
        assert_true(scene.fake.reports[i].startup_energy_j < scene.fake.reports[i].energy_j);
    }
    check_same(scene.fake.ends[0].startup_time_s, 4.0, 1e-6);
}

/* Without a step before the first report, and without the begin of an epoch, it is not known. */
static void test_unknown_start_up(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    tuner_bench_pass(&scene.bench, 4.0);
    (void)fly_session_report(scene.session, 0.5);
    fly_session_step_begin(scene.session);
    tuner_bench_pass(&scene.bench, 1.0);
    (void)fly_session_report(scene.session, 0.95);
    scene_end(&scene);
    assert_true(isnan(scene.fake.reports[0].startup_time_s) && isnan(scene.fake.reports[0].startup_energy_j));
    assert_true(isnan(scene.fake.reports[1].startup_time_s));
}

/* A program that fails before its first step tells nothing; with one, it crashed. */
static void test_fails_before_its_first_step(void **state)
{
    (void)state;
    for (int steps = 0; steps <= 1; steps++) {
        struct scene scene;

        scene_begin(&scene);
        scene_open(&scene);
        if (steps > 0)
            fly_session_step_begin(scene.session);
        fly_session_close(scene.session, FLY_SESSION_CRASHED);
        tuner_bench_stop(&scene.bench);
        assert_int_equal(scene.fake.end_count, 1);
        assert_int_equal(scene.fake.ends[0].outcome, TRIAL_CRASHED);
        assert_int_equal(scene.fake.ends[0].nothing_learnt, steps == 0);
        assert_int_equal(forget(NULL), 0);
    }
}

static void test_over_without_memory(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    fly_session_out_of_memory(scene.session);
    assert_true(fly_session_is_over(scene.session));
    scene_end(&scene);
}

/* A program with fewer epochs than the job's: its target was not reached, and another try may. */
static void test_ended_by_the_program(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    (void)train_epoch(&scene, 2, 0.5);
    assert_int_equal(fly_session_exit_status(scene.session), 0);
    fly_session_training_ended(scene.session);
    assert_true(fly_session_is_over(scene.session));
    assert_int_equal(fly_session_exit_status(scene.session), FLY_SESSION_EXIT_AGAIN);
    scene_end(&scene);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_NOT_REACHED);
}

static void test_steps_wait_until_settled(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].wants_profile = true;
    scene.fake.proposals[0].limit_w = NAN;
    scene_open(&scene);
    assert_true(fly_session_step_waits(scene.session));
    scene_end(&scene);
    scene_begin(&scene);
    scene.fake.proposals[0].limit_w = 200.0;
    scene_open(&scene);
    assert_false(fly_session_step_waits(scene.session));
    scene_end(&scene);
}

static void test_resumes_from_its_own_batch_size(void **state)
{
    struct scene scene;
    struct fly_error error;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].batch_size = 32;
    scene_open(&scene);
    assert_int_equal(fly_session_resumed_from(scene.session, 4, 64, &error), FLY_ECONFLICT);
    check_contains(error.text, "batch size 64, and this try has 32");
    assert_int_equal(status_of(&scene).epoch, 0);
    assert_int_equal(fly_session_resumed_from(scene.session, 4, 32, &error), 0);
    assert_int_equal(status_of(&scene).epoch, 4);
    scene_end(&scene);
}

static void test_trains_with_less(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].batch_size = 32;
    scene_open(&scene);
    fly_session_trains_with(scene.session, 32);
    fly_session_trains_with(scene.session, 64);
    assert_false(fly_session_is_over(scene.session));
    fly_session_trains_with(scene.session, 16);
    assert_true(fly_session_is_over(scene.session));
    fly_session_trains_with(scene.session, 8);
    scene_end(&scene);
    assert_int_equal(scene.fake.end_count, 1);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_OUT_OF_MEMORY);
}

static void test_splits(void **state)
{
    static const struct {
        uint32_t batch_size, replicas, most;
        struct fly_batch_split split; /* all 0: refused */
    } rows[] = {
        {256, 1, 32, {256, 32, 8}},
        {256, 4, 32, {64, 32, 2}},
        {256, 4, 64, {64, 64, 1}},
        {256, 4, 0, {64, 64, 1}},
        {96, 1, 36, {96, 32, 3}},
        {7, 1, 3, {7, 1, 7}},
        {1, 1, 1, {1, 1, 1}},
        {100, 8, 4, {0}},
        {64, 0, 4, {0}},
        {0, 1, 4, {0}},
        {4, 8, 4, {0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_batch_split split = {0};
        struct fly_error error;
        int code = fly_batch_split(rows[i].batch_size, rows[i].replicas, rows[i].most, &split, &error);

        print_message("# %u over %u, at most %u\n", rows[i].batch_size, rows[i].replicas, rows[i].most);
        assert_int_equal(code, rows[i].split.accumulation == 0 ? FLY_EUSAGE : 0);
        assert_memory_equal(&split, &rows[i].split, sizeof split);
        assert_int_equal(split.micro_batch_size * split.accumulation, split.local_batch_size);
    }
}

static int join_nobody(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    (void)data;
    (void)sums;
    (void)sum_count;
    (void)maxima;
    (void)max_count;
    return 0;
}

/* Four ranks, two of which work on the same samples. */
static void test_replicas(void **state)
{
    struct scene scene;
    struct fly_error error;

    (void)state;
    scene_begin(&scene);
    scene.options.world_size = 4;
    scene.options.all_reduce = join_nobody;
    scene.options.replicas = 5;
    assert_int_equal(session_new(&scene.options, &scene.parts, &scene.session, &error), FLY_EUSAGE);
    check_contains(error.text, "5 replicas of 4 ranks");
    scene.options.replicas = 2;
    scene_open(&scene);
    assert_int_equal(fly_session_local_batch_size(scene.session), 16);
    assert_int_equal(scene.fake.question.hardware.world_size, 4);
    scene_end(&scene);
}

/* A program that was compiled before there were the newest options. */
static void test_options_of_before(void **state)
{
    struct scene scene;
    struct fly_error error;

    (void)state;
    scene_begin(&scene);
    scene.options.size = offsetof(struct fly_session_options, tries_directory);
    scene.options.tries_directory = (const char *)1; /* is not read */
    scene.options.replicas = 99;
    scene_open(&scene);
    assert_int_equal(fly_session_local_batch_size(scene.session), 32);
    scene_end(&scene);
    scene_begin(&scene);
    scene.options.size = offsetof(struct fly_session_options, tries_directory) - 1;
    assert_int_equal(session_new(&scene.options, &scene.parts, &scene.session, &error), FLY_EUSAGE);
    scene.session = NULL;
    scene_end(&scene);
}

/* The directory of a try of that trial and attempt. */
static void directory_of(struct scene *scene, uint64_t trial, uint32_t attempt, char path[256])
{
    struct fly_error error;

    scene_begin(scene);
    scene->fake.proposals[0].trial = trial;
    scene->fake.proposals[0].attempt = attempt;
    scene->options.tries_directory = spool;
    scene_open(scene);
    assert_int_equal(fly_session_directory(scene->session, path, 256, &error), 0);
    assert_int_equal(access(path, W_OK), 0);
    assert_int_equal(fly_session_directory(scene->session, path, 8, &error), FLY_ELIMIT);
    scene_end(scene);
}

static void test_directories(void **state)
{
    struct scene scene;
    char first[256], path[256];

    (void)state;
    directory_of(&scene, 3, 1, first);
    check_contains(first, "/job/trial-3");
    directory_of(&scene, 3, 2, path); /* requeued */
    assert_string_equal(path, first);
    directory_of(&scene, 4, 1, path);
    assert_string_not_equal(path, first);
    directory_of(&scene, 3, 1, path); /* of another log */
    check_contains(path, "/job/trial-3-2");
    directory_of(&scene, 3, 3, path);
    check_contains(path, "/job/trial-3-2");
    directory_of(&scene, 5, 2, path); /* nothing was left of its first attempt */
    check_contains(path, "/job/trial-5");
}

/* Without the log the run's name tells attempts from submissions. */
static void test_directories_without_a_log(void **state)
{
    struct scene scene;
    char paths[4][256];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fly_error error;

        scene_begin(&scene);
        fake_jobs_fail(&scene.fake, FAKE_PROPOSE, FLY_EUNREACHABLE, 1, 0);
        scene.options.tries_directory = spool;
        scene.options.run = i < 2 ? "run-1" : NULL;
        scene_open(&scene);
        assert_int_equal(fly_session_directory(scene.session, paths[i], sizeof paths[i], &error), 0);
        check_contains(paths[i], "/job/run-");
        scene_end(&scene);
    }
    assert_string_equal(paths[0], paths[1]);
    assert_string_not_equal(paths[0], paths[2]);
    assert_string_not_equal(paths[2], paths[3]);
}

static void test_directories_that_cannot_be_made(void **state)
{
    struct scene scene;
    struct fly_error error;
    char path[256] = "untouched";

    (void)state;
    scene_begin(&scene);
    scene.options.tries_directory = "/dev/null/tries";
    scene_open(&scene);
    assert_int_equal(fly_session_directory(scene.session, path, sizeof path, &error), FLY_EWRITE);
    check_contains(error.text, "/dev/null/tries/job/trial-");
    assert_string_equal(path, "untouched");
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_over_by_an_answer, forget),
        cmocka_unit_test_teardown(test_energy_never_goes_back, forget),
        cmocka_unit_test_teardown(test_start_up, forget),
        cmocka_unit_test_teardown(test_unknown_start_up, forget),
        cmocka_unit_test_teardown(test_fails_before_its_first_step, forget),
        cmocka_unit_test_teardown(test_over_without_memory, forget),
        cmocka_unit_test_teardown(test_ended_by_the_program, forget),
        cmocka_unit_test_teardown(test_steps_wait_until_settled, forget),
        cmocka_unit_test_teardown(test_resumes_from_its_own_batch_size, forget),
        cmocka_unit_test_teardown(test_trains_with_less, forget),
        cmocka_unit_test(test_splits),
        cmocka_unit_test_teardown(test_replicas, forget),
        cmocka_unit_test_teardown(test_options_of_before, forget),
        cmocka_unit_test_teardown(test_directories, forget),
        cmocka_unit_test_teardown(test_directories_without_a_log, forget),
        cmocka_unit_test_teardown(test_directories_that_cannot_be_made, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

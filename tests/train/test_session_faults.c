/* SPDX-License-Identifier: Apache-2.0 */
/* A log that fails in every way: training goes on, and what could not be delivered is. */
#include "session_scene.h"

#include <stdio.h>

static const int passing[] = {FLY_EBUSY,  FLY_EUNREACHABLE, FLY_EUNSURE, FLY_EREAD,
                              FLY_EWRITE, FLY_EPERM,        FLY_ENOMEM};
static const int lasting[] = {FLY_EUSAGE,    FLY_EDATA,  FLY_ELIMIT,      FLY_ENOTFOUND,
                              FLY_ECONFLICT, FLY_ESTATE, FLY_EUNSUPPORTED};

/* Neither definition nor proposal: the default batch size, answers by the target, and said once. */
static void check_no_trial(enum fake_call call, int code)
{
    struct scene scene;
    struct fly_session_status status;

    assert_int_equal(forget(NULL), 0);
    scene_begin(&scene);
    fake_jobs_fail(&scene.fake, call, code, 1, 0);
    scene_open(&scene);
    status = status_of(&scene);
    assert_int_equal(status.batch_size, 64);
    assert_false(status.connected);
    check_contains(status.text, fly_error_name(code));
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_REACHED);
    assert_int_equal(scene.bench.sets, 0);
    assert_int_equal(fly_session_exit_status(scene.session), 0);
    assert_false(fly_session_try_again(scene.session));
    scene_end(&scene);
    assert_int_equal(scene.fake.report_count + scene.fake.end_count, 0);
    assert_int_equal(spool_files(".calls"), spool_passing(code) ? 1 : 0);
}

/* What was reported meanwhile is on record as soon as the log answers: unasked, with the batch size that was
 * run. */
static void test_unasked(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passing); i++) {
        struct scene scene;

        scene_begin(&scene);
        emulator_set_limit_w(scene.bench.emulator, 0, 275.0, NULL);
        fake_jobs_fail(&scene.fake, FAKE_PROPOSE, passing[i], 1, 0);
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
        assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_REACHED);
        assert_int_equal(status_of(&scene).kept, 2);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        assert_int_equal(scene.fake.report_count, 0);
        assert_int_equal(spool_files(".calls"), 1);
        memset(scene.fake.faults, 0, sizeof scene.fake.faults);
        scene.fake.proposals[0].trial = 77;
        scene_open(&scene);
        assert_int_equal(scene.fake.ran_batch_size, 64);
        check_double(scene.fake.ran_limit_w, 275.0);
        assert_int_equal(scene.fake.question.ran_batch_size, 0);
        assert_int_equal(scene.fake.report_count, 2);
        for (uint32_t at = 0; at < 2; at++) {
            assert_int_equal(scene.fake.reports[at].trial, 77);
            assert_int_equal(scene.fake.reports[at].attempt, 1);
            assert_int_equal(scene.fake.reports[at].epoch, at + 1);
        }
        assert_int_equal(scene.fake.end_count, 1);
        assert_int_equal(scene.fake.ends[0].trial, 77);
        assert_int_equal(scene.fake.ends[0].outcome, TRIAL_REACHED);
        assert_int_equal(spool_files("s") + spool_files(".refused"), 0);
        scene_end(&scene);
    }
}

static void test_no_trial(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passing); i++) {
        check_no_trial(FAKE_DEFINE, passing[i]);
        check_no_trial(FAKE_PROPOSE, passing[i]);
    }
    for (size_t i = 0; i < COUNT(lasting); i++) {
        check_no_trial(FAKE_DEFINE, lasting[i]);
        check_no_trial(FAKE_PROPOSE, lasting[i]);
    }
}

/* The log fails from the second report on: training goes on, and the next session delivers everything in
 * order. */
static void check_kept(int code)
{
    struct scene scene;

    scene_begin(&scene);
    fake_jobs_fail(&scene.fake, FAKE_REPORT, code, 2, 0);
    fake_jobs_fail(&scene.fake, FAKE_END, code, 1, 0);
    scene_open(&scene);
    for (int i = 0; i < 4; i++)
        assert_int_equal(train_epoch(&scene, 2, 0.1 * i), FLY_GO_ON);
    assert_int_equal(status_of(&scene).kept, 3);
    check_contains(status_of(&scene).text, fly_error_name(code));
    assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_REACHED);
    /* Once, again where it was unsure, and not for each report. */
    assert_int_equal(scene.fake.calls[FAKE_REPORT], code == FLY_EUNSURE ? 3 : 2);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    assert_int_equal(spool_files(".calls"), 1);
    memset(scene.fake.faults, 0, sizeof scene.fake.faults);
    scene_open(&scene);
    assert_int_equal(scene.fake.report_count, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(scene.fake.reports[i].epoch, i + 1);
    check_double(scene.fake.reports[3].metric, 0.1 * 3);
    assert_int_equal(scene.fake.end_count, 1);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_REACHED);
    assert_int_equal(spool_files(".calls"), 0);
    assert_int_equal(spool_files(".refused"), 0);
    scene_end(&scene);
}

static void test_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passing); i++)
        check_kept(passing[i]);
}

/* A log that answers again gets what was kept before what is new. */
static void test_kept_and_delivered(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    fake_jobs_fail(&scene.fake, FAKE_REPORT, FLY_EUNREACHABLE, 1, 1);
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    assert_int_equal(train_epoch(&scene, 2, 0.2), FLY_GO_ON);
    assert_int_equal(scene.fake.report_count, 0);
    tuner_bench_pass(&scene.bench, 60.0);
    assert_int_equal(train_epoch(&scene, 2, 0.3), FLY_GO_ON);
    assert_int_equal(scene.fake.report_count, 3);
    assert_int_equal(scene.fake.reports[0].epoch, 1);
    assert_int_equal(scene.fake.reports[2].epoch, 3);
    assert_int_equal(status_of(&scene).kept, 0);
    assert_string_equal(status_of(&scene).text, "");
    assert_int_equal(spool_files(".calls"), 0);
    scene_end(&scene);
}

/* What the log refuses for good stops nothing, and is not kept for ever. */
static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lasting); i++) {
        struct scene scene;

        scene_begin(&scene);
        fake_jobs_fail(&scene.fake, FAKE_REPORT, lasting[i], 1, 0);
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
        assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_REACHED);
        check_contains(status_of(&scene).text, fly_error_name(lasting[i]));
        assert_int_equal(status_of(&scene).kept, 0);
        scene_end(&scene);
        assert_int_equal(spool_files(".calls"), 0);
    }
}

/* A session that lives keeps its file to itself; a file for another log stays; half a line counts for
 * nothing. */
static void test_others_files(void **state)
{
    struct scene first, second;
    char path[128];
    FILE *file;

    (void)state;
    scene_begin(&first);
    fake_jobs_fail(&first.fake, FAKE_REPORT, FLY_EBUSY, 1, 0);
    scene_open(&first);
    assert_int_equal(train_epoch(&first, 2, 0.1), FLY_GO_ON);
    snprintf(path, sizeof path, "%s/other.calls", spool);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"flyball_calls\":1,\"store\":\"elsewhere\"}\n");
    fclose(file);
    snprintf(path, sizeof path, "%s/torn.calls", spool);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "{\"flyball_calls\":1,\"store\":\"\"}\nnonsense\n{\"call\":\"end\",\"job\":\"j\",\"trial\":7,"
            "\"attempt\":1,"
            "\"outcome\":\"crashed\",\"energy_j\":null,\"time_s\":2,\"text\":\"\"}\n{\"call\":\"end\",");
    fclose(file);
    fake_jobs_init(&second.fake);
    second = first;
    fake_jobs_init(&second.fake);
    second.jobs = fake_jobs_handle(&second.fake);
    second.parts.jobs = &second.jobs;
    scene_open(&second);
    assert_int_equal(second.fake.report_count, 0);
    assert_int_equal(second.fake.end_count, 1);
    assert_int_equal(second.fake.ends[0].trial, 7);
    assert_true(isnan(second.fake.ends[0].energy_j));
    assert_int_equal(spool_files(".calls"), 2);
    assert_int_equal(spool_files(".refused"), 1);
    fly_session_close(second.session, FLY_SESSION_INTERRUPTED);
    scene_end(&first);
}

/* Nowhere to keep it either. */
static void test_no_place(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.parts.spool_directory = "/proc/nowhere";
    fake_jobs_fail(&scene.fake, FAKE_REPORT, FLY_EBUSY, 1, 0);
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    check_contains(status_of(&scene).text, "FLY_EBUSY; and reports in '/proc/nowhere' cannot be kept");
    assert_int_equal(status_of(&scene).kept, 0);
    scene_end(&scene);
}

/* A GPU that says nothing of its energy: metric and time are on record. */
static void test_no_energy(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    emulator_lose(scene.bench.emulator, 0);
    assert_int_equal(train_epoch(&scene, 50, 0.5), FLY_GO_ON);
    assert_int_equal(train_epoch(&scene, 50, 0.6), FLY_GO_ON);
    assert_int_equal(scene.fake.report_count, 2);
    assert_true(isnan(scene.fake.reports[1].energy_j));
    assert_true(scene.fake.reports[1].time_s > scene.fake.reports[0].time_s);
    check_double(scene.fake.reports[1].metric, 0.6);
    check_contains(status_of(&scene).text, "flyball doctor");
    assert_true(isnan(status_of(&scene).energy_j));
    assert_true(status_of(&scene).connected);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_no_energy, forget),
        cmocka_unit_test_teardown(test_no_trial, forget),
        cmocka_unit_test_teardown(test_unasked, forget),
        cmocka_unit_test_teardown(test_kept, forget),
        cmocka_unit_test_teardown(test_kept_and_delivered, forget),
        cmocka_unit_test_teardown(test_refused, forget),
        cmocka_unit_test_teardown(test_others_files, forget),
        cmocka_unit_test_teardown(test_no_place, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

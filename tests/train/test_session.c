/* SPDX-License-Identifier: Apache-2.0 */
/* A session against a log that answers as it is told: every answer, every end. */
#include "session_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/program/run_variables.h"
#include "train/program/step_lines.h"

static void test_asks_and_reports(void **state)
{
    struct scene scene;
    struct fly_session_status status;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].batch_size = 16;
    scene.fake.answers[1] = (struct job_answered){
        .answer = JOB_REACHED, .stop = JOB_STOP_TARGET, .epochs = 10, .energy_j = 7.0, .time_s = 8.0};
    scene.fake.answers[0] = (struct job_answered){.epochs = 5, .energy_j = 1.0, .time_s = 2.0};
    scene.fake.answer_count = 2;
    scene_open(&scene);
    assert_string_equal(scene.fake.definition.name, "job");
    assert_int_equal(scene.fake.batch_sizes[2], 64);
    assert_true(isinf(scene.fake.definition.objective.max_slowdown));
    check_double(scene.fake.definition.beta, 2.0);
    assert_string_equal(scene.fake.definition.policy, ""); /* named to nobody: the log's owner decides */
    assert_string_equal(scene.fake.run, "run-1");
    assert_int_equal(scene.fake.question.tries, 3);
    assert_int_equal(scene.fake.question.hardware.gpu_count, 1);
    assert_int_equal(scene.fake.question.hardware.world_size, 1);
    assert_int_equal(scene.fake.question.hardware.gpu_memory_bytes, (uint64_t)48 << 30);
    assert_int_equal(scene.fake.question.hardware.limit_count, 9);
    check_double(scene.fake.limits_w[0], 100.0);
    check_double(scene.fake.limits_w[8], 300.0);
    check_double(scene.fake.question.hardware.max_power_w, 300.0);
    check_contains(scene.fake.gpu_model, "A40");
    assert_int_equal(fly_session_batch_size(scene.session), 16);
    check_double(fly_session_learning_rate(scene.session, 0.4, FLY_SCALE_LINEAR), 0.1);
    check_double(fly_session_learning_rate(scene.session, 0.4, FLY_SCALE_SQUARE_ROOT), 0.2);
    assert_int_equal(train_epoch(&scene, 10, 0.5), FLY_GO_ON);
    status = status_of(&scene);
    assert_int_equal(status.epochs_max, 5);
    assert_string_equal(status.text, "");
    assert_string_equal(status.why, "told so");
    assert_true(status.connected);
    assert_int_equal(train_epoch(&scene, 10, 0.95), FLY_REACHED);
    assert_int_equal(fly_session_report(scene.session, 0.99), FLY_REACHED); /* of what has ended */
    assert_int_equal(scene.fake.report_count, 2);
    assert_int_equal(scene.fake.reports[1].epoch, 2);
    check_double(scene.fake.reports[1].metric, 0.95);
    /* Steps of 0.18 s at most, and evaluation: energy and time are of both. */
    assert_true(scene.fake.reports[1].time_s > 2 * (0.5 + 10 * 0.1));
    assert_true(scene.fake.reports[1].energy_j > 100.0 * scene.fake.reports[1].time_s);
    assert_true(scene.fake.reports[1].energy_j > 1.9 * scene.fake.reports[0].energy_j);
    check_double(status_of(&scene).energy_j, 7.0);
    assert_false(fly_session_try_again(scene.session));
    assert_int_equal(fly_session_exit_status(scene.session), 0);
    scene_end(&scene);
    assert_int_equal(scene.fake.end_count, 1);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_REACHED);
    assert_int_equal(spool_files(".calls"), 0);
}

/* What the log answers to the second epoch, and what becomes of it. */
static const struct {
    const char *name;
    bool has_target, trains_on;
    double metric;
    enum job_answer answer;
    enum job_stop stop;
    enum fly_answer expected;
    bool again;
    enum trial_outcome outcome; /* as the session's end says */
} answers[] = {
    {"go on", true, false, 0.5, JOB_GO_ON, JOB_STOP_NONE, FLY_GO_ON, false, TRIAL_NOT_REACHED},
    {"go on without target", false, false, NAN, JOB_GO_ON, JOB_STOP_NONE, FLY_GO_ON, false, TRIAL_REACHED},
    {"reached", true, false, 0.95, JOB_REACHED, JOB_STOP_TARGET, FLY_REACHED, false, TRIAL_REACHED},
    {"reached, trains on", true, true, 0.95, JOB_REACHED, JOB_STOP_NONE, FLY_REACHED, false, TRIAL_REACHED},
    {"too expensive", true, false, 0.5, JOB_STOP, JOB_STOP_COST, FLY_STOP, true, TRIAL_STOPPED},
    {"no time left", true, false, 0.5, JOB_STOP, JOB_STOP_DEADLINE, FLY_STOP, true, TRIAL_STOPPED},
    {"all epochs", true, false, 0.5, JOB_STOP, JOB_STOP_EPOCHS, FLY_STOP, true, TRIAL_NOT_REACHED},
    {"all epochs without target", false, false, NAN, JOB_STOP, JOB_STOP_EPOCHS, FLY_STOP, false,
     TRIAL_REACHED},
    {"the log knows better", true, false, 0.95, JOB_GO_ON, JOB_STOP_NONE, FLY_GO_ON, false, TRIAL_REACHED},
};

static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct scene scene;

        print_message("# %s\n", answers[i].name);
        scene_begin(&scene);
        scene.options.target = answers[i].has_target ? FLY_TARGET_AT_LEAST : FLY_TARGET_NONE;
        scene.options.trains_on = answers[i].trains_on;
        scene.fake.proposals[0].stops_at_target = answers[i].has_target && !answers[i].trains_on;
        scene.fake.proposals[1] = scene.fake.proposals[0];
        scene.fake.proposals[1].trial = 2;
        scene.fake.proposals[1].try_number = 1;
        scene.fake.proposals[1].last_try = true;
        scene.fake.proposal_count = 2;
        scene.fake.answers[0] = (struct job_answered){.epochs = 10};
        scene.fake.answers[1] =
            (struct job_answered){.answer = answers[i].answer, .stop = answers[i].stop, .epochs = 10};
        scene.fake.answer_count = 2;
        scene_open(&scene);
        assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
        assert_int_equal(train_epoch(&scene, 2, answers[i].metric), answers[i].expected);
        assert_int_equal(scene.fake.reports[1].steps, 2);
        assert_int_equal(fly_session_exit_status(scene.session),
                         answers[i].again ? FLY_SESSION_EXIT_AGAIN : 0);
        assert_int_equal(fly_session_try_again(scene.session), answers[i].again);
        if (answers[i].again) {
            assert_int_equal(scene.fake.ends[0].outcome, answers[i].outcome);
            assert_int_equal(status_of(&scene).trial, 2);
            assert_string_not_equal(scene.fake.request, scene.fake.first_request);
            assert_string_equal(scene.fake.submission, "run-1");
            scene.fake.answer_count = 0;
            assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
            fly_session_close(scene.session, FLY_SESSION_CRASHED);
            scene.session = NULL;
            assert_int_equal(scene.fake.ends[1].outcome, TRIAL_CRASHED);
            assert_int_equal(scene.fake.ends[1].trial, 2);
        } else {
            fly_session_close(scene.session, FLY_SESSION_FINISHED);
            scene.session = NULL;
            assert_int_equal(scene.fake.end_count, 1);
            assert_int_equal(scene.fake.ends[0].outcome, answers[i].outcome);
        }
        scene_end(&scene);
    }
}

/* A program that evaluates every 3 steps: epochs of 160 samples are those of 10 steps at batch size 16. */
static void test_report_every_samples(void **state)
{
    static const uint32_t ended[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3};
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.options.report_every_samples = 160;
    scene.fake.proposals[0].batch_size = 16;
    scene_open(&scene);
    assert_int_equal(scene.fake.definition.report_every_samples, 160);
    for (size_t i = 0; i < COUNT(ended); i++) {
        assert_int_equal(train_epoch(&scene, 3, 0.1), FLY_GO_ON);
        assert_int_equal(status_of(&scene).epoch, ended[i]);
    }
    assert_int_equal(scene.fake.calls[FAKE_REPORT], 3);
    assert_int_equal(scene.fake.reports[2].epoch, 3);
    scene_end(&scene);
}

/* A program that evaluates every 5 steps and tells none of them; the default batch size is 64. */
static void test_report_every_steps(void **state)
{
    static const struct {
        uint32_t batch_size, ended[6];
    } rows[] = {{16, {0, 0, 0, 1, 1, 1}}, {64, {1, 2, 3, 4, 5, 6}}, {128, {2, 4, 6, 8, 10, 12}}};

    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct scene scene;

        scene_begin(&scene);
        scene.options.report_every_steps = 5;
        scene.options.max_epochs = 20;
        scene.fake.proposals[0].batch_size = rows[row].batch_size;
        scene.fake.proposals[0].epochs = 20;
        scene_open(&scene);
        assert_int_equal(scene.fake.definition.report_every_steps, 5);
        assert_int_equal(scene.fake.definition.report_every_samples, 5 * 64);
        for (size_t i = 0; i < COUNT(rows[row].ended); i++) {
            assert_int_equal(fly_session_report(scene.session, 0.1), FLY_GO_ON);
            assert_int_equal(status_of(&scene).epoch, rows[row].ended[i]);
        }
        scene_end(&scene);
    }
}

/* Steps that the program tells count before those; an epoch may be other samples. */
static void test_report_every_steps_told(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.options.report_every_steps = 1000;
    scene.options.report_every_samples = 64;
    scene.fake.proposals[0].batch_size = 16;
    scene_open(&scene);
    assert_int_equal(scene.fake.definition.report_every_samples, 64);
    assert_int_equal(train_epoch(&scene, 3, 0.1), FLY_GO_ON);
    assert_int_equal(status_of(&scene).epoch, 0);
    assert_int_equal(train_epoch(&scene, 3, 0.1), FLY_GO_ON);
    assert_int_equal(status_of(&scene).epoch, 1);
    scene_end(&scene);
}

static void test_interrupted(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].attempt = 2;
    scene.fake.proposals[0].epochs_done = 4;
    scene_open(&scene);
    assert_int_equal(status_of(&scene).epochs_done, 4);
    fly_session_resumed(scene.session, 3);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    assert_int_equal(scene.fake.reports[0].epoch, 4);
    assert_int_equal(scene.fake.reports[0].steps, 0); /* it may have begun within the epoch */
    assert_int_equal(scene.fake.reports[0].attempt, 2);
    fly_session_close(scene.session, FLY_SESSION_INTERRUPTED);
    scene.session = NULL;
    assert_int_equal(scene.fake.end_count, 0);
    scene_end(&scene);
}

static void test_out_of_memory(void **state)
{
    struct scene scene;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    fly_session_step_begin(scene.session);
    fly_session_out_of_memory(scene.session);
    fly_session_out_of_memory(scene.session);
    assert_int_equal(scene.fake.end_count, 1);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_OUT_OF_MEMORY);
    assert_int_equal(fly_session_exit_status(scene.session), FLY_SESSION_EXIT_AGAIN);
    assert_true(fly_session_try_again(scene.session));
    assert_int_equal(scene.fake.end_count, 1);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    scene_end(&scene);
}

/* With one try, or with the last, there is none after it. */
static void test_tries(void **state)
{
    static const struct {
        uint32_t tries, asked, number;
        bool last, again;
    } cases[] = {{0, 1, 0, true, false},
                 {2, 2, 0, false, true},
                 {2, 2, 1, true, false},
                 {FLY_SESSION_ALWAYS, 0, 5, false, true}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scene scene;

        scene_begin(&scene);
        scene.options.tries = cases[i].tries;
        scene.fake.proposals[0].try_number = cases[i].number;
        scene.fake.proposals[0].last_try = cases[i].last;
        scene.fake.answers[0] = (struct job_answered){.answer = JOB_STOP, .stop = JOB_STOP_EPOCHS};
        scene.fake.answer_count = 1;
        scene_open(&scene);
        assert_int_equal(scene.fake.question.tries, cases[i].asked);
        assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_STOP);
        assert_int_equal(fly_session_try_again(scene.session), cases[i].again);
        scene_end(&scene);
    }
}

static void test_disabled(void **state)
{
    struct scene scene;

    (void)state;
    setenv("FLYBALL_DISABLE", "1", 1);
    scene_begin(&scene);
    scene.options.max_epochs = 3;
    scene_open(&scene);
    assert_true(status_of(&scene).disabled);
    assert_int_equal(fly_session_batch_size(scene.session), 64);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_GO_ON);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_STOP);
    assert_int_equal(fly_session_exit_status(scene.session), 0);
    assert_false(fly_session_try_again(scene.session));
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_REACHED);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene.options.target_hold = 2;
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_GO_ON);
    assert_int_equal(train_epoch(&scene, 2, 0.95), FLY_REACHED);
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        assert_int_equal(scene.fake.calls[call], 0);
    assert_int_equal(scene.bench.sets, 0);
    scene_end(&scene);
    unsetenv("FLYBALL_DISABLE");
}

/* The child's copy does nothing. */
static void test_inert_after_fork(void **state)
{
    struct scene scene;
    int status;
    pid_t child;

    (void)state;
    scene_begin(&scene);
    scene.fake.proposals[0].limit_w = 150.0;
    scene_open(&scene);
    child = fork();
    if (child == 0) {
        bool quiet = fly_session_step_begin(scene.session) == FLY_GO_ON &&
                     fly_session_report(scene.session, 0.95) == FLY_GO_ON &&
                     !fly_session_try_again(scene.session);

        fly_session_out_of_memory(scene.session);
        fly_session_close(scene.session, FLY_SESSION_CRASHED);
        _exit(quiet && scene.fake.calls[FAKE_REPORT] + scene.fake.calls[FAKE_END] == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_double(tuner_bench_limit_w(&scene.bench), 150.0);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene.session = NULL;
    check_double(tuner_bench_limit_w(&scene.bench), 300.0);
    scene_end(&scene);
}

/* Signs of life until the first report, from a thread; in real time. */
static void test_beats(void **state)
{
    struct scene scene;
    struct mono_time end = mono_after_s(mono_now(), 60.0);
    unsigned beats;

    (void)state;
    scene_begin(&scene);
    scene.parts.clock = &clock_real;
    scene.parts.beat_s = 0.002;
    scene_open(&scene);
    check_double(scene.fake.question.heartbeat_s, 0.002);
    while (scene.fake.calls[FAKE_HEARTBEAT] < 3 && mono_elapsed_s(mono_now(), end) > 0)
        usleep(1000);
    assert_true(scene.fake.calls[FAKE_HEARTBEAT] >= 3);
    assert_int_equal(fly_session_report(scene.session, 0.1), FLY_GO_ON);
    beats = scene.fake.calls[FAKE_HEARTBEAT];
    usleep(20000);
    assert_int_equal(scene.fake.calls[FAKE_HEARTBEAT], beats);
    scene_end(&scene);
}

/* Inside of `flyball run --job` it takes up the try that was proposed, and leaves another to it. */
static void test_inside(void **state)
{
    struct scene scene;
    struct step_lines lines;
    enum step_event event;

    (void)state;
    assert_int_equal(step_lines_open(&lines, NULL), 0);
    setenv(run_variables[RUN_VARIABLE_JOB].name, "job", 1);
    setenv(run_variables[RUN_VARIABLE_REQUEST].name, "around-1", 1);
    setenv(run_variables[RUN_VARIABLE_RUN].name, "requeued", 1);
    setenv(run_variables[RUN_VARIABLE_BATCH_SIZE].name, "16", 1);
    scene_begin(&scene);
    scene.options.run = NULL;
    scene.fake.answers[0] = (struct job_answered){.answer = JOB_STOP, .stop = JOB_STOP_COST};
    scene.fake.answer_count = 1;
    scene_open(&scene);
    assert_true(step_lines_next(&lines, &event));
    assert_int_equal(event, STEP_SESSION);
    assert_string_equal(scene.fake.request, "around-1");
    assert_string_equal(scene.fake.run, "requeued");
    assert_int_equal(scene.fake.calls[FAKE_DEFINE], 0);
    assert_int_equal(train_epoch(&scene, 2, 0.1), FLY_STOP);
    assert_false(fly_session_try_again(scene.session));
    assert_int_equal(fly_session_exit_status(scene.session), FLY_SESSION_EXIT_AGAIN);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    fake_jobs_fail(&scene.fake, FAKE_PROPOSE, FLY_EUNREACHABLE, 1, 0);
    scene_open(&scene);
    assert_int_equal(fly_session_batch_size(scene.session), 16);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    /* Another job's session is its own. */
    scene.options.job_name = "other";
    memset(scene.fake.faults, 0, sizeof scene.fake.faults);
    scene_open(&scene);
    assert_string_not_equal(scene.fake.request, "around-1");
    assert_int_equal(scene.fake.calls[FAKE_DEFINE], 1);
    scene_end(&scene);
    for (int i = 0; i < RUN_VARIABLE_COUNT; i++)
        unsetenv(run_variables[i].name);
    step_lines_close(&lines);
}

/* docs/reference/variables.md has every variable, as the table says it. */
static void test_variables_are_documented(void **state)
{
    static char text[1 << 15];
    FILE *file = fopen("docs/reference/variables.md", "r");
    size_t length;

    (void)state;
    assert_non_null(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    for (int i = 0; i < RUN_VARIABLE_COUNT; i++) {
        char row[256];

        snprintf(row, sizeof row, "| `%s` | ", run_variables[i].name);
        check_contains(text, row);
    }
}

static int no_reduce(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    (void)data;
    (void)sums;
    (void)sum_count;
    (void)maxima;
    (void)max_count;
    return -1;
}

static void test_usage(void **state)
{
    static const double high[] = {900.0};
    struct scene scene;
    struct fly_error error;
    struct fly_session *session = NULL;
    struct fly_session_status status = {.size = 1};

    (void)state;
    scene_begin(&scene);
#define REFUSED(change, part)                                                           \
    do {                                                                                \
        struct fly_session_options options = scene.options;                             \
        change;                                                                         \
        assert_int_not_equal(session_new(&options, &scene.parts, &session, &error), 0); \
        check_contains(error.text, part);                                               \
        assert_null(session);                                                           \
    } while (0)
    REFUSED(options.size = 8, "options.size is 8");
    REFUSED(options.job_name = NULL, "job_name");
    REFUSED(options.world_size = 2, "2 ranks need an all_reduce");
    REFUSED((options.world_size = 2, options.rank = 2, options.all_reduce = no_reduce), "rank 2 of 2");
    REFUSED(options.wait_s = -1.0, "wait_s is -1");
    REFUSED(options.batch_count = 0, "batch");
    scene.options.policy = "zues";
    assert_int_equal(fly_session_open(&scene.options, &session, &error), FLY_EUSAGE);
    check_contains(error.text, "(did you mean 'zeus'?)");
    scene.options.policy = NULL;
    assert_int_equal(scene.fake.calls[FAKE_DEFINE], 0);
    scene.options.limits_w = high;
    scene.options.limit_count = 1;
    scene_open(&scene);
    check_contains(status_of(&scene).limit_text, "limit 900 W; the GPU takes 100 to 300 W");
    assert_int_equal(scene.fake.question.hardware.limit_count, 0);
    assert_int_equal(fly_session_status(scene.session, &status), FLY_EUSAGE);
    assert_string_equal(fly_answer_name(FLY_REACHED), "reached");
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_asks_and_reports, forget),
        cmocka_unit_test_teardown(test_answers, forget),
        cmocka_unit_test_teardown(test_report_every_samples, forget),
        cmocka_unit_test_teardown(test_report_every_steps, forget),
        cmocka_unit_test_teardown(test_report_every_steps_told, forget),
        cmocka_unit_test_teardown(test_interrupted, forget),
        cmocka_unit_test_teardown(test_out_of_memory, forget),
        cmocka_unit_test_teardown(test_tries, forget),
        cmocka_unit_test_teardown(test_disabled, forget),
        cmocka_unit_test_teardown(test_inert_after_fork, forget),
        cmocka_unit_test_teardown(test_beats, forget),
        cmocka_unit_test_teardown(test_inside, forget),
        cmocka_unit_test(test_variables_are_documented),
        cmocka_unit_test_teardown(test_usage, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

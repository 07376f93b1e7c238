/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions over a real log in a file: recurrences, requeues, and programs that are killed. */
#include "job/jobs.h"
#include "session_scene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[48], store[96];

/* The store's clock: the machine's, and so much later. */
enum { SAMPLES = 400 * 64 /* of an epoch */ };

static double later_s;

static struct mono_time later_now(void *state)
{
    (void)state;
    return mono_now();
}

static struct wall_time later_date(void *state)
{
    struct wall_time date = clock_real.date(clock_real.state);

    (void)state;
    date.ns += (int64_t)(later_s * 1e9);
    return date;
}

static const struct clock later = {.name = "later", .now = later_now, .date = later_date};

static int begin(void **state)
{
    char command[160];

    (void)state;
    later_s = 0.0;
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", directory, directory);
    return system(command);
}

static int end(void **state)
{
    char command[96];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

static struct jobs open_log(void)
{
    const struct job_options options = {.clock = &later};
    struct jobs jobs;
    struct fly_error error;

    if (jobs_open(store, &options, &jobs, &error) < 0)
        fail_msg("%s", error.text);
    return jobs;
}

/* A scene over the log. */
static void log_begin(struct scene *scene)
{
    scene_begin(scene);
    scene->jobs = open_log();
}

static void log_end(struct scene *scene)
{
    scene_end(scene);
    jobs_close(&scene->jobs);
}

/* Trains until the answer is final, reaching the target in that epoch; how many it took. */
static unsigned train(struct scene *scene, unsigned reaching, enum fly_answer *out_answer)
{
    unsigned epoch = 0, steps = SAMPLES / fly_session_batch_size(scene->session);

    do {
        epoch++;
        *out_answer = train_epoch(scene, steps, epoch == reaching ? 0.95 : 0.1);
    } while (*out_answer == FLY_GO_ON);
    return epoch;
}

/* The first recurrence measures the limits of the default batch size; later ones know them. */
static void test_recurrences(void **state)
{
    const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
    struct scene scene;

    (void)state;
    log_begin(&scene);
    scene.options.run = NULL;
    scene.options.tries = 1;
    for (unsigned i = 0; i < 4; i++) {
        struct fly_session_status status;
        enum fly_answer answer;

        scene_open(&scene);
        status = status_of(&scene);
        assert_string_equal(status.text, "");
        assert_int_equal(status.trial, i + 1);
        assert_int_equal(status.recurrence, i);
        assert_true(status.last_try);
        assert_int_equal(status.batch_size, 64);
        assert_true(strlen(status.why) > 10);
        if (i > 0)
            check_double(tuner_bench_limit_w(&scene.bench), tuner_profile_best_w(&scene.profile, &energy));
        assert_int_equal(train(&scene, 3, &answer), 3);
        assert_int_equal(answer, FLY_REACHED);
        check_double(tuner_bench_limit_w(&scene.bench), tuner_profile_best_w(&scene.profile, &energy));
        check_contains(status_of(&scene).text, "");
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
        check_double(tuner_bench_limit_w(&scene.bench), 300.0);
    }
    log_end(&scene);
}

/* With tries left it explores; a batch size that never reaches the target is told to stop, and the last does.
 */
static void test_tries_until_a_model(void **state)
{
    struct scene scene;
    unsigned tries = 0, batches_seen = 0;

    (void)state;
    log_begin(&scene);
    scene.options.run = NULL;
    scene.options.tries = 4;
    scene.options.policy = "zeus"; /* tries every batch size */
    for (unsigned i = 0; i < 12; i++) {
        enum fly_answer answer;

        scene_open(&scene);
        do {
            uint32_t batch_size = fly_session_batch_size(scene.session);

            batches_seen |= batch_size;
            assert_int_equal(status_of(&scene).recurrence, i);
            tries++;
            train(&scene, batch_size == 16 ? 99 : 3, &answer);
        } while (fly_session_try_again(scene.session));
        assert_int_equal(answer, FLY_REACHED);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
    }
    assert_true(tries > 12);
    assert_int_equal(batches_seen, 16 | 32 | 64);
    log_end(&scene);
}

/* A batch size that does not fit is not run again, nor a larger one. */
static void test_out_of_memory(void **state)
{
    struct scene scene;

    (void)state;
    log_begin(&scene);
    scene.options.run = NULL;
    scene.options.tries = FLY_SESSION_ALWAYS;
    for (unsigned i = 0; i < 8; i++) {
        enum fly_answer answer = FLY_STOP;
        unsigned tries = 0;

        scene_open(&scene);
        do {
            assert_true(tries++ < 10);
            if (fly_session_batch_size(scene.session) >= 32) {
                assert_int_equal(i, 0);
                fly_session_step_begin(scene.session);
                fly_session_out_of_memory(scene.session);
                assert_string_equal(status_of(&scene).text, "");
            } else {
                train(&scene, 3, &answer);
            }
        } while (fly_session_try_again(scene.session));
        assert_int_equal(answer, FLY_REACHED);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
    }
    log_end(&scene);
}

/* This program in its other role: opens a session, trains so many epochs, and is killed. */
static int be_killed(char *const *arguments)
{
    struct scene scene;
    unsigned long epochs = strtoul(arguments[3], NULL, 10);

    snprintf(store, sizeof store, "%s", arguments[1]);
    log_begin(&scene);
    scene.options.run = arguments[2];
    scene_open(&scene);
    while (epochs-- > 0)
        train_epoch(&scene, 400, 0.1);
    kill(getpid(), SIGKILL);
    return 0;
}

static void run_and_kill(const char *run, const char *epochs)
{
    char gpus[96];
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_session_local", store, run, epochs, NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    /* Who is killed leaves its emulated GPUs. */
    snprintf(gpus, sizeof gpus, "/tmp/flyball-test-tuner-%d-0", (int)child);
    assert_int_equal(unlink(gpus), 0);
}

/* A requeued run goes on with the same trial: same batch size, energy added. */
static void test_requeued(void **state)
{
    struct scene scene;
    struct fly_session_status status;
    enum fly_answer answer;

    (void)state;
    run_and_kill("night-1", "2");
    log_begin(&scene);
    scene.options.run = "night-1";
    scene_open(&scene);
    status = status_of(&scene);
    assert_int_equal(status.trial, 1);
    assert_int_equal(status.attempt, 2);
    assert_int_equal(status.epochs_done, 2);
    /* Back to the checkpoint after the first epoch. */
    fly_session_resumed(scene.session, 1);
    assert_int_equal(train_epoch(&scene, 400, 0.1), FLY_GO_ON);
    assert_true(status_of(&scene).energy_j > 2.5 * 400 * 0.1 * 100.0);
    fly_session_close(scene.session, FLY_SESSION_INTERRUPTED);
    scene_open(&scene);
    assert_int_equal(status_of(&scene).attempt, 3);
    fly_session_resumed(scene.session, 2);
    assert_int_equal(train(&scene, 1, &answer), 1);
    assert_int_equal(answer, FLY_REACHED);
    log_end(&scene);
}

/* Without a name of its run nobody goes on with it: another is proposed, and it expires. */
static void test_expires(void **state)
{
    struct scene scene;
    uint64_t expired = 0;
    enum fly_answer answer;

    (void)state;
    run_and_kill("", "2");
    log_begin(&scene);
    scene.options.run = NULL;
    scene_open(&scene);
    assert_int_equal(status_of(&scene).trial, 2);
    assert_int_equal(train(&scene, 3, &answer), 3);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene.session = NULL;
    assert_int_equal(scene.jobs.backend->expire(scene.jobs.self, "job", &expired, NULL), 0);
    assert_int_equal(expired, 0);
    later_s = 2 * 86400.0;
    assert_int_equal(scene.jobs.backend->expire(scene.jobs.self, "job", &expired, NULL), 0);
    assert_int_equal(expired, 1);
    log_end(&scene);
}

/* Another definition is not tuned, and the text names what differs. */
static void test_changed_definition(void **state)
{
    struct scene scene;
    enum fly_answer answer;

    (void)state;
    log_begin(&scene);
    scene_open(&scene);
    train(&scene, 2, &answer);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    scene.options.max_epochs = 11;
    scene_open(&scene);
    check_contains(status_of(&scene).text, "max_epochs");
    assert_int_equal(fly_session_batch_size(scene.session), 64);
    assert_int_equal(train(&scene, 2, &answer), 2);
    assert_int_equal(answer, FLY_REACHED);
    log_end(&scene);
}

/* Trainings while the log was out of reach are on record afterwards, and teach what the default takes. */
static void test_unasked(void **state)
{
    struct scene scene;
    struct fake_jobs unreachable;
    enum fly_answer answer;

    (void)state;
    fake_jobs_init(&unreachable);
    fake_jobs_fail(&unreachable, FAKE_DEFINE, FLY_EUNREACHABLE, 1, 0);
    scene_begin(&scene);
    scene.options.run = NULL;
    scene.jobs = fake_jobs_handle(&unreachable);
    for (int i = 0; i < 2; i++) {
        scene_open(&scene);
        assert_int_equal(train(&scene, 3, &answer), 3);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
    }
    scene.jobs = open_log();
    scene_open(&scene);
    assert_string_equal(status_of(&scene).text, "");
    assert_int_equal(status_of(&scene).trial, 3);
    assert_int_equal(status_of(&scene).recurrence, 2);
    check_contains(status_of(&scene).why, "kept batch size 64, the best so far at an expected 6");
    assert_int_equal(spool_files(".calls") + spool_files(".refused"), 0);
    log_end(&scene);
}

/* An address that no log answers at. */
static void test_unreachable(void **state)
{
    struct scene scene;
    enum fly_answer answer;

    (void)state;
    scene_begin(&scene);
    scene.parts.jobs = NULL;
    scene.options.store = "/nowhere/at/all.sqlite";
    scene_open(&scene);
    check_contains(status_of(&scene).text, "/nowhere/at/all.sqlite");
    assert_false(status_of(&scene).connected);
    assert_int_equal(fly_session_batch_size(scene.session), 64);
    assert_int_equal(train(&scene, 2, &answer), 2);
    assert_int_equal(answer, FLY_REACHED);
    scene_end(&scene);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recurrences, begin, end),
        cmocka_unit_test_setup_teardown(test_tries_until_a_model, begin, end),
        cmocka_unit_test_setup_teardown(test_out_of_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_requeued, begin, end),
        cmocka_unit_test_setup_teardown(test_expires, begin, end),
        cmocka_unit_test_setup_teardown(test_changed_definition, begin, end),
        cmocka_unit_test_setup_teardown(test_unasked, begin, end),
        cmocka_unit_test_setup_teardown(test_unreachable, begin, end),
    };

    if (count == 4)
        return be_killed(arguments);
    snprintf(directory, sizeof directory, "/tmp/flyball-test-session-local-%d", (int)getpid());
    snprintf(store, sizeof store, "%s/store.sqlite", directory);
    snprintf(spool, sizeof spool, "%s/spool", directory);
    unsetenv("FLYBALL_DISABLE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

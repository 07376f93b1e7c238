/* SPDX-License-Identifier: Apache-2.0 */
/* A log that does not come back from a call: nobody waits for it, and it gets everything later. */
#include "session_scene.h"

#include <sys/stat.h>

#include "base/thread/thread_group.h"

/* No wait of a training comes near it, and no machine is so slow. */
static const double soon_s = 120.0;

static void wait_until(bool (*done)(struct scene *scene), struct scene *scene)
{
    struct mono_time end = mono_after_s(mono_now(), soon_s);

    while (!done(scene) && mono_elapsed_s(mono_now(), end) > 0)
        usleep(1000);
    assert_true(done(scene));
}

static bool no_threads(struct scene *scene)
{
    (void)scene;
    return !left_threads_any();
}

/* In real time. What is not real is that the GPU works while nobody looks. */
static void begin(struct scene *scene, bool heeds)
{
    assert_int_equal(forget(NULL), 0);
    scene_begin(scene);
    scene->parts.clock = &clock_real;
    scene->parts.heeds = heeds;
    scene->options.leave_limits = true;
}

static enum fly_answer report(struct scene *scene, double metric)
{
    tuner_bench_pass(&scene->bench, 10.0);
    return fly_session_report(scene->session, metric);
}

static void release(struct scene *scene)
{
    for (int i = 0; i < FAKE_CALL_COUNT; i++)
        scene->fake.held[i] = false;
}

/* A session that comes later finds everything; in order, and once. */
static void check_delivered(struct scene *scene, uint32_t epochs, enum trial_outcome outcome)
{
    scene_open(scene);
    assert_int_equal(scene->fake.report_count, epochs);
    for (uint32_t i = 0; i < epochs; i++)
        assert_int_equal(scene->fake.reports[i].epoch, i + 1);
    assert_int_equal(scene->fake.end_count, 1);
    assert_int_equal(scene->fake.ends[0].outcome, outcome);
    assert_int_equal(spool_files("s") + spool_files(".refused"), 0);
    fly_session_close(scene->session, FLY_SESSION_INTERRUPTED);
    tuner_bench_stop(&scene->bench);
}

/* Reports go on while one of them hangs, and so does the end. The log gets them while the program lives. */
static void test_hangs_and_comes_back(void **state)
{
    struct scene scene;
    struct mono_time start;

    (void)state;
    begin(&scene, false);
    scene_open(&scene);
    scene.fake.held[FAKE_REPORT] = true;
    start = mono_now();
    for (int i = 0; i < 3; i++)
        assert_int_equal(report(&scene, 0.1), FLY_GO_ON);
    assert_int_equal(report(&scene, 0.95), FLY_REACHED);
    assert_int_equal(status_of(&scene).kept, 4);
    assert_int_equal(spool_files(".calls"), 1);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    assert_true(mono_elapsed_s(start, mono_now()) < soon_s);
    assert_int_equal(scene.fake.report_count, 0);
    assert_true(left_threads_any());
    release(&scene);
    wait_until(no_threads, &scene);
    check_delivered(&scene, 4, TRIAL_REACHED);
}

static void copy_spool(const char *command)
{
    char line[400];

    snprintf(line, sizeof line, command, spool, spool, spool);
    assert_int_equal(system(line), 0);
}

/* The process ends while the log hangs: what is on the disk by then is all there was. */
static void test_left_on_disk(void **state)
{
    struct scene scene, next;

    (void)state;
    begin(&scene, true);
    scene_open(&scene);
    scene.fake.held[FAKE_REPORT] = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(report(&scene, 0.1), FLY_GO_ON);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    /* As a process would leave it. */
    copy_spool("mkdir '%s/copy' && cp '%s'/*.calls '%s/copy'");
    release(&scene);
    wait_until(no_threads, &scene);
    assert_int_equal(spool_files(".calls"), 0);
    copy_spool("mv '%s'/copy/*.calls '%s' && rmdir '%s/copy'");
    tuner_bench_stop(&scene.bench);
    scene_begin(&next);
    next.parts.clock = &clock_real;
    next.options.leave_limits = true;
    check_delivered(&next, 3, TRIAL_NOT_REACHED);
    for (int i = 0; i < 3; i++)
        assert_true(next.fake.reports[i].afterwards);
}

/* A question that hangs is given up; what was run in place of the answer goes on record by a name of its own.
 */
static void test_question_hangs(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, false);
    scene.options.wait_s = 0.1;
    scene.fake.held[FAKE_PROPOSE] = true;
    scene_open(&scene);
    assert_int_equal(status_of(&scene).batch_size, 64);
    assert_int_equal(status_of(&scene).trial, 0);
    check_contains(status_of(&scene).text, "no answer within 0.1 s");
    assert_int_equal(report(&scene, 0.95), FLY_REACHED);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    release(&scene);
    wait_until(no_threads, &scene);
    assert_int_equal(scene.fake.ran_batch_size, 64);
    assert_int_equal(scene.fake.calls[FAKE_PROPOSE], 2);
    check_contains(scene.fake.request, "-ran");
    assert_string_not_equal(scene.fake.request, scene.fake.first_request);
    assert_int_equal(spool_files(".calls"), 0);
    assert_int_equal(scene.fake.report_count, 1);
    tuner_bench_stop(&scene.bench);
}

static bool heard(struct scene *scene)
{
    session_heed(scene->session);
    return scene->session->answer == FLY_STOP;
}

/* Whoever heeds is told later; what the program does until then is on record too. */
static void test_late_answer(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, true);
    scene.fake.answers[0] = (struct job_answered){.answer = JOB_STOP, .stop = JOB_STOP_COST, .epochs = 1};
    scene.fake.answer_count = 1;
    scene_open(&scene);
    scene.fake.held[FAKE_REPORT] = true;
    assert_int_equal(report(&scene, 0.1), FLY_GO_ON);
    assert_int_equal(report(&scene, 0.2), FLY_GO_ON);
    release(&scene);
    wait_until(heard, &scene);
    assert_int_equal(scene.session->stop, JOB_STOP_COST);
    assert_int_equal(report(&scene, 0.3), FLY_STOP);
    assert_int_equal(status_of(&scene).epoch, 2); /* what came behind the end is for the log alone */
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    assert_int_equal(scene.fake.report_count, 3);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_STOPPED);
    tuner_bench_stop(&scene.bench);
}

static bool heard_of_target(struct scene *scene)
{
    session_settle(scene->session);
    return scene->session->reached;
}

/*
 * The log hangs while the training reaches its most epochs: it is to stop, and reports one more with its
 * target before it does. The log counts that, so no other try follows.
 */
static void test_reaches_after_its_stop(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, true);
    scene.options.tries = 3;
    scene.fake.proposals[0].epochs = 2;
    scene.fake.answers[2] =
        (struct job_answered){.answer = JOB_REACHED, .stop = JOB_STOP_TARGET, .epochs = 3};
    scene.fake.answer_count = 3;
    scene_open(&scene);
    scene.fake.held[FAKE_REPORT] = true;
    assert_int_equal(report(&scene, 0.1), FLY_GO_ON);
    assert_int_equal(report(&scene, 0.2), FLY_STOP);
    assert_true(session_wants_again(scene.session));
    assert_int_equal(report(&scene, 0.95), FLY_STOP);
    release(&scene);
    wait_until(heard_of_target, &scene);
    assert_false(session_wants_again(scene.session));
    assert_int_equal(fly_session_exit_status(scene.session), 0);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    assert_int_equal(scene.fake.report_count, 3);
    assert_true(scene.fake.reports[1].afterwards);
    assert_int_equal(scene.fake.ends[0].outcome, TRIAL_REACHED);
    tuner_bench_stop(&scene.bench);
}

/* What is said after the program's end is of its end. */
static void test_stopped(void **state)
{
    struct scene scene;
    double time_s, energy_j;

    (void)state;
    scene_begin(&scene);
    scene_open(&scene);
    assert_int_equal(train_epoch(&scene, 20, 0.1), FLY_GO_ON);
    tuner_bench_pass(&scene.bench, 5.0);
    time_s = session_time_s(scene.session);
    energy_j = session_energy_j(scene.session);
    session_stop(scene.session);
    tuner_bench_pass(&scene.bench, 100.0);
    assert_int_equal(fly_session_report(scene.session, 0.2), FLY_GO_ON);
    check_double(scene.fake.reports[1].time_s, time_s);
    check_double(scene.fake.reports[1].energy_j, energy_j);
    tuner_bench_pass(&scene.bench, 100.0);
    fly_session_close(scene.session, FLY_SESSION_FINISHED);
    check_double(scene.fake.ends[0].time_s, time_s);
    check_double(scene.fake.ends[0].energy_j, energy_j);
    scene.session = NULL;
    tuner_bench_stop(&scene.bench);
}

/* Others' files are nobody's business, nor what is no file. */
static void test_others(void **state)
{
    struct scene scene;
    char path[160];

    (void)state;
    begin(&scene, false);
    assert_int_equal(mkdir(spool, 0700), 0);
    snprintf(path, sizeof path, "%s/1.calls", spool);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/2.calls", spool);
    {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fprintf(file,
                "{\"flyball_calls\":1,\"store\":\"\"}\n{\"call\":\"end\",\"job\":\"j\",\"trial\":7,"
                "\"attempt\":1,\"outcome\":\"crashed\",\"energy_j\":null,\"time_s\":2,\"text\":\"\"}\n");
        fclose(file);
    }
    if (geteuid() == 0)
        assert_int_equal(chown(path, 12345, 12345), 0);
    scene_open(&scene);
    assert_int_equal(scene.fake.end_count, geteuid() == 0 ? 0 : 1);
    fly_session_close(scene.session, FLY_SESSION_INTERRUPTED);
    tuner_bench_stop(&scene.bench);
}

/* FLYBALL_SPOOL names the place; one that is no whole path keeps nothing anywhere. */
static void test_named_place(void **state)
{
    struct fly_error error = {.text = ""};
    struct spool place;

    (void)state;
    setenv("FLYBALL_SPOOL", spool, 1);
    spool_init(&place, NULL, "store");
    assert_string_equal(place.directory, spool);
    assert_int_equal(spool_add_lines(&place, "{}\n", 3, &error), 0);
    assert_int_equal(spool_files(".calls"), 1);
    assert_int_equal(spool_count_left(&place), 0); /* its session lives */
    spool_end(&place, SPOOL_LEFT);
    assert_int_equal(spool_count_left(&place), 1);
    setenv("FLYBALL_SPOOL", "somewhere", 1);
    spool_init(&place, NULL, "store");
    assert_int_equal(spool_add_lines(&place, "{}\n", 3, &error), FLY_ENOTFOUND);
    check_contains(error.text, "set FLYBALL_SPOOL to a whole path");
    unsetenv("FLYBALL_SPOOL");
}

enum { LETTERS = 250, LETTERS_FIRST = 200, TAKEN = 60, WORDS = 61000 };

static struct mono_time virtual_now(void *state)
{
    (void)state;
    return mono_now();
}

/* Of all files there. */
static off_t spool_bytes(void)
{
    DIR *directory = opendir(spool);
    const struct dirent *entry;
    struct stat facts;
    off_t bytes = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.' && fstatat(dirfd(directory), entry->d_name, &facts, 0) == 0)
            bytes += facts.st_size;
    }
    closedir(directory);
    return bytes;
}

static void send_end(struct post *post, uint64_t trial, enum post_haste haste)
{
    static char words[WORDS + 1];
    const struct spool_entry entry = {.kind = SPOOL_END,
                                      .end = {.job = "job",
                                              .trial = trial,
                                              .attempt = 1,
                                              .outcome = TRIAL_CRASHED,
                                              .energy_j = NAN,
                                              .time_s = NAN,
                                              .text = memset(words, 'x', WORDS),
                                              .reference_per_kwh = NAN}};

    assert_int_equal(post_send(post, &entry, haste), trial);
}

/* A file that is full of what was delivered meanwhile is written anew, before nobody could read it. */
static void test_full_file(void **state)
{
    static const struct clock clock = {.name = "other", .now = virtual_now};
    struct post_options options = {.clock = &clock, .directory = spool, .wait_s = 1.0};
    struct fake_jobs fake;
    struct jobs jobs;
    struct post *post;
    struct fly_error error;

    (void)state;
    fake_jobs_init(&fake);
    jobs = fake_jobs_handle(&fake);
    options.jobs = &jobs;
    assert_int_equal(post_new(&options, &post, &error), 0);
    fake_jobs_fail(&fake, FAKE_END, FLY_EUNREACHABLE, 1, 0);
    for (uint64_t i = 1; i <= LETTERS_FIRST; i++)
        send_end(post, i, POST_RARELY);
    assert_int_equal(post_look(post).kept, LETTERS_FIRST);
    fake_jobs_fail(&fake, FAKE_END, FLY_EUNREACHABLE, fake.calls[FAKE_END] + TAKEN + 1, 0);
    for (uint64_t i = LETTERS_FIRST + 1; i < LETTERS; i++)
        send_end(post, i, i == LETTERS_FIRST + 1 ? POST_NOW : POST_RARELY);
    assert_int_equal(fake.end_count, TAKEN);
    assert_int_equal(post_look(post).kept, LETTERS - 1 - TAKEN);
    assert_int_equal(spool_files(".calls"), 1);
    assert_in_range(spool_bytes(), (LETTERS - 1 - TAKEN) * WORDS, (LETTERS - 20) * WORDS);
    memset(fake.faults, 0, sizeof fake.faults);
    send_end(post, LETTERS, POST_NOW);
    assert_int_equal(fake.end_count, LETTERS);
    for (uint64_t i = 0; i < LETTERS; i++)
        assert_int_equal(fake.ends[i].trial, i + 1);
    post_close(post, 1.0, NULL);
    assert_int_equal(spool_files(".calls"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_hangs_and_comes_back, forget),
        cmocka_unit_test_teardown(test_left_on_disk, forget),
        cmocka_unit_test_teardown(test_question_hangs, forget),
        cmocka_unit_test_teardown(test_late_answer, forget),
        cmocka_unit_test_teardown(test_reaches_after_its_stop, forget),
        cmocka_unit_test_teardown(test_stopped, forget),
        cmocka_unit_test_teardown(test_others, forget),
        cmocka_unit_test_teardown(test_named_place, forget),
        cmocka_unit_test_teardown(test_full_file, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

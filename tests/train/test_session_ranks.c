/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of ranks that train together. */
#include "session_scene.h"

#include <pthread.h>

#include "meter_fixture.h"

/* Two ranks in threads, each with 100 W; the second's clock is its own and runs ahead. */
enum { RANKS = 2 };

struct meeting {
    pthread_barrier_t barrier;
    double sums[RANKS][32], maxima[RANKS][32];
    unsigned fails_after; /* so many exchanges of each; 0: never */
};

struct member {
    struct meeting *meeting;
    uint32_t rank;
    unsigned exchanges;
    struct fake_jobs fake;
    enum fly_answer answers[4];
    struct fly_session_status status;
    char directory[256];
};

static int two_ranks(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    struct member *member = data;
    struct meeting *meeting = member->meeting;

    if (++member->exchanges > meeting->fails_after && meeting->fails_after > 0)
        return -1;
    memcpy(meeting->sums[member->rank], sums, sum_count * sizeof sums[0]);
    memcpy(meeting->maxima[member->rank], maxima, max_count * sizeof maxima[0]);
    pthread_barrier_wait(&meeting->barrier);
    for (size_t i = 0; i < sum_count; i++)
        sums[i] = meeting->sums[0][i] + meeting->sums[1][i];
    for (size_t i = 0; i < max_count; i++)
        maxima[i] = fmax(meeting->maxima[0][i], meeting->maxima[1][i]);
    pthread_barrier_wait(&meeting->barrier);
    return 0;
}

static void *run_member(void *data)
{
    struct member *member = data;
    struct meter_fixture fixture;
    struct jobs jobs = fake_jobs_handle(&member->fake);
    struct fly_session_options options = {.size = sizeof options,
                                          .job_name = "job",
                                          .batch_sizes = scene_batch_sizes,
                                          .batch_count = COUNT(scene_batch_sizes),
                                          .default_batch_size = 64,
                                          .target = FLY_TARGET_AT_LEAST,
                                          .target_metric = 0.9,
                                          .max_epochs = 10,
                                          .leave_limits = true,
                                          .tries_directory = spool,
                                          .world_size = RANKS,
                                          .rank = member->rank,
                                          .all_reduce = two_ranks,
                                          .all_reduce_data = member};
    struct session_parts parts = {.jobs = &jobs, .spool_directory = spool};
    struct fly_session *session;

    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 8);
    options.meter = fixture.meter;
    parts.clock = &fixture.clock;
    assert_int_equal(session_new(&options, &parts, &session, NULL), 0);
    for (int i = 0; i < 4; i++) {
        fly_session_step_begin(session);
        fixture_pass(&fixture, member->rank == 0 ? 10.0 : 20.0);
        member->answers[i] = fly_session_report(session, 0.1 * (i + 1));
    }
    member->status.size = sizeof member->status;
    assert_int_equal(fly_session_status(session, &member->status), 0);
    assert_int_equal(fly_session_directory(session, member->directory, sizeof member->directory, NULL), 0);
    fly_session_close(session, FLY_SESSION_FINISHED);
    fixture_tear_down(&fixture);
    return NULL;
}

static void run_members(struct meeting *meeting, struct member members[RANKS])
{
    pthread_t threads[RANKS];

    pthread_barrier_init(&meeting->barrier, NULL, RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        members[i] = (struct member){.meeting = meeting, .rank = i};
        fake_jobs_init(&members[i].fake);
    }
    members[0].fake.answers[0] = members[0].fake.answers[1] = (struct job_answered){.epochs = 8};
    members[0].fake.answers[2] =
        (struct job_answered){.answer = JOB_STOP, .stop = JOB_STOP_COST, .epochs = 3};
    members[0].fake.answer_count = 3;
    for (int i = 0; i < RANKS; i++)
        pthread_create(&threads[i], NULL, run_member, &members[i]);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&meeting->barrier);
}

/* Rank 0 alone talks to the log, and all have its answers; energy is that of both, time that of the slower.
 */
static void test_ranks(void **state)
{
    static struct meeting meeting;
    static struct member members[RANKS];

    (void)state;
    run_members(&meeting, members);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(members[i].status.batch_size, 32);
        assert_int_equal(members[i].status.local_batch_size, 16);
        assert_int_equal(members[i].answers[1], FLY_GO_ON);
        assert_int_equal(members[i].answers[2], FLY_STOP);
        assert_int_equal(members[i].answers[3], FLY_STOP);
        assert_int_equal(members[i].status.epochs_max, 3);
    }
    check_contains(members[0].directory, "/job/trial-1");
    assert_string_equal(members[1].directory, members[0].directory);
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        assert_int_equal(members[1].fake.calls[call], 0);
    assert_int_equal(members[0].fake.question.hardware.gpu_count, 2);
    assert_int_equal(members[0].fake.report_count, 3);
    check_close(members[0].fake.reports[0].energy_j, 3000.0, 0.02);
    check_close(members[0].fake.reports[0].time_s, 20.0, 0.01);
}

/* Where they cannot be joined each answers by the target. */
static void test_ranks_apart(void **state)
{
    static struct meeting meeting = {.fails_after = 6};
    static struct member members[RANKS];

    (void)state;
    run_members(&meeting, members);
    assert_int_equal(members[1].answers[3], FLY_GO_ON);
    assert_int_equal(members[1].status.batch_size, 32);
    assert_int_equal(members[1].fake.calls[FAKE_REPORT], 0);
    assert_string_not_equal(members[1].directory, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_ranks, forget),
        cmocka_unit_test_teardown(test_ranks_apart, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

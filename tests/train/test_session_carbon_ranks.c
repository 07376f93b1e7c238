/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that follow the grid together, and what a fork of one does. */
#include "carbon_day.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Ranks as processes, each with a machine and a clock of its own. */
enum { RANKS = 2, JOINED_MAX = 32, EPOCHS = 6 };

struct ranks {
    pthread_barrier_t barrier;
    double sums[RANKS][JOINED_MAX], maxima[RANKS][JOINED_MAX];
    float limits_w[RANKS][EPOCHS * EPOCH_STEPS]; /* in each step */
    unsigned exchanges[RANKS], calls[RANKS];
    unsigned fails_after; /* so many exchanges; 0: never */
    struct taken taken[RANKS];
    struct fly_carbon_report reports[RANKS];
};

struct rank {
    struct ranks *ranks;
    uint32_t number;
};

static int join(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    const struct rank *rank = data;
    struct ranks *ranks = rank->ranks;

    if (++ranks->exchanges[rank->number] > ranks->fails_after && ranks->fails_after > 0)
        return -1;
    memcpy(ranks->sums[rank->number], sums, sum_count * sizeof *sums);
    memcpy(ranks->maxima[rank->number], maxima, max_count * sizeof *maxima);
    pthread_barrier_wait(&ranks->barrier);
    for (size_t i = 0; i < sum_count; i++)
        sums[i] = ranks->sums[0][i] + ranks->sums[1][i];
    for (size_t i = 0; i < max_count; i++)
        maxima[i] = fmax(ranks->maxima[0][i], ranks->maxima[1][i]);
    pthread_barrier_wait(&ranks->barrier);
    return 0;
}

/* What a rank does, in its process: the second is slower, so that its clock runs ahead of the first one's. */
static void run_rank(struct ranks *ranks, uint32_t number)
{
    struct rank rank = {ranks, number};
    struct scene scene;

    alarm(60);
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene.bench.slower *= number == 0 ? 1.0 : 1.02;
    scene.options.world_size = RANKS;
    scene.options.rank = number;
    scene.options.all_reduce = join;
    scene.options.all_reduce_data = &rank;
    scene_open(&scene);
    for (int i = 0; i < EPOCHS; i++) {
        fly_session_epoch_begin(scene.session);
        for (int j = 0; j < EPOCH_STEPS; j++) {
            step(&scene, &ranks->taken[number]);
            ranks->limits_w[number][i * EPOCH_STEPS + j] = (float)ranks->taken[number].last_w;
        }
        fly_session_evaluation_begin(scene.session);
        fly_session_report(scene.session, 0.1);
    }
    ranks->reports[number] = carbon_of(&scene);
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        ranks->calls[number] += scene.fake.calls[call];
    scene_end(&scene);
    _exit(0);
}

static struct ranks *run_ranks(unsigned fails_after)
{
    struct ranks *ranks =
        /* cppcheck-suppress invalidFunctionArg ; -1 is what a mapping without a file wants */
        mmap(NULL, sizeof *ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pid_t processes[RANKS];

    assert_ptr_not_equal(ranks, MAP_FAILED);
    ranks->fails_after = fails_after;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&ranks->barrier, &shared, RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        processes[i] = fork();
        assert_int_not_equal(processes[i], -1);
        if (processes[i] == 0)
            run_rank(ranks, i);
    }
    for (int i = 0; i < RANKS; i++) {
        int status = -1;

        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
    return ranks;
}

/* Rank 0 decides, and each limit begins with the same step on both. */
static void test_ranks(void **state)
{
    struct ranks *ranks = run_ranks(0);

    (void)state;
    assert_memory_equal(ranks->limits_w[0], ranks->limits_w[1], sizeof ranks->limits_w[0]);
    assert_true(ranks->taken[0].limits > 3);
    assert_true(clean_w(&ranks->taken[0]) > dirty_w(&ranks->taken[0]) + 20.0);
    assert_int_equal(ranks->exchanges[0], ranks->exchanges[1]);
    assert_int_equal(ranks->calls[1], 0);
    assert_true(ranks->reports[0].decisions > 0);
    assert_int_equal(ranks->reports[1].decisions, 0);
    munmap(ranks, sizeof *ranks);
}

/* Where they cannot be joined any more both keep the limit that stands. */
static void test_apart(void **state)
{
    struct ranks *ranks = run_ranks(1500);

    (void)state;
    assert_memory_equal(ranks->limits_w[0], ranks->limits_w[1], sizeof ranks->limits_w[0]);
    check_contains(ranks->reports[0].reason, "could not be joined");
    check_contains(ranks->reports[1].reason, "could not be joined");
    munmap(ranks, sizeof *ranks);
}

/* A fork of the training turns nothing and writes nothing. */
static void test_fork(void **state)
{
    struct taken taken;
    struct scene scene;
    int status = -1;
    pid_t child;

    (void)state;
    day_begin(&scene);
    know_profile(&scene, 200.0);
    scene_open(&scene);
    taken = train(&scene, 2);
    child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        alarm(60);
        for (int i = 0; i < 2000; i++)
            fly_session_step_begin(scene.session);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        _exit((int)scene.bench.sets);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), scene.bench.sets);
    check_double(tuner_bench_limit_w(&scene.bench), taken.last_w);
    taken = train(&scene, 6);
    assert_true(clean_w(&taken) > dirty_w(&taken) + 20.0);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_ranks, forget_grid),
        cmocka_unit_test_teardown(test_apart, forget_grid),
        cmocka_unit_test_teardown(test_fork, forget_grid),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

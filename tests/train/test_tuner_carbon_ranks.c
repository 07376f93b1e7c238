/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that follow the grid: rank 0 says the limit, and all set it at the same step. */
#include "test.h"

#include <sys/mman.h>

#include "carbon_scene.h"
#include "rank_join.h"

enum { STEPS = 4000, EPOCH_STEPS = 333 };

struct ranks {
    struct rank_join join;
    int failing; /* cannot set a limit from some moment on; -1: none */
    double limits_w[RANKS][STEPS];
    struct fly_tuner_report reports[RANKS];
    struct fly_carbon_report carbon[RANKS];
    double step_time_s[RANKS];
};

/* Rank 0 alone knows what the grid is like. */
static void run_rank(void *data, int number)
{
    static struct carbon_scene scene;
    struct ranks *ranks = data;
    struct rank rank = {&ranks->join, number};

    carbon_scene_start(&scene, 5.0, STEPS, 1.08);
    carbon_scene_grid(&scene, number == 0 ? carbon_scene_restless : carbon_scene_constant, 900, 2.0 * DAY_S);
    scene.carbon.host_w = 50.0;
    scene.options.all_reduce = rank_all_reduce;
    scene.options.all_reduce_data = &rank;
    scene.options.rank = (uint32_t)number;
    carbon_scene_open(&scene);
    for (int i = 0; i < STEPS; i++) {
        if (i == STEPS / 2 && number == ranks->failing)
            scene.bench.sets_until_failing = 0;
        if (i % EPOCH_STEPS == 0)
            assert_int_equal(fly_tuner_epoch_begin(scene.tuner), 0);
        carbon_scene_step(&scene);
        ranks->limits_w[number][i] = tuner_bench_limit_w(&scene.bench);
        if (i % EPOCH_STEPS == EPOCH_STEPS - 1)
            assert_int_equal(fly_tuner_epoch_end(scene.tuner), 0);
    }
    ranks->reports[number] = tuner_bench_report(scene.tuner);
    ranks->carbon[number] = carbon_scene_report(&scene);
    ranks->step_time_s[number] = scene.step_time_s;
    scene.bench.sets_until_failing = -1;
    if (number == ranks->failing)
        emulator_set_limit_w(scene.bench.emulator, 0, 300.0, NULL);
    carbon_scene_stop(&scene);
}

static struct ranks *run_ranks(int failing)
{
    struct ranks *ranks = rank_memory(sizeof *ranks);

    ranks->failing = failing;
    rank_join_init(&ranks->join);
    rank_processes(run_rank, ranks);
    return ranks;
}

static void test_ranks_agree(void **state)
{
    struct ranks *ranks = run_ranks(-1);

    (void)state;
    for (int i = 0; i < RANKS; i++) {
        for (int step = 0; step < STEPS; step++)
            check_double(ranks->limits_w[i][step], ranks->limits_w[0][step]);
        assert_int_equal(ranks->reports[i].reason, FLY_TUNER_GOES_ON);
    }
    assert_true(ranks->carbon[0].changes >= 4);
    assert_true(ranks->carbon[0].decisions > ranks->carbon[0].changes);
    assert_int_equal(ranks->carbon[1].decisions, 0);
    assert_string_equal(ranks->carbon[2].reason, "as rank 0 says");
    assert_true(ranks->step_time_s[0] <= 1.08 * STEPS * 5.0);
    munmap(ranks, sizeof *ranks);
}

/* A rank that fails stops all, each at the limit that it began with. */
static void test_rank_fails(void **state)
{
    (void)state;
    for (int failing = 0; failing < RANKS; failing++) {
        struct ranks *ranks = run_ranks(failing);

        for (int i = 0; i < RANKS; i++) {
            assert_int_equal(ranks->reports[i].state, FLY_TUNER_STOPPED);
            assert_int_equal(ranks->reports[i].reason,
                             i == failing ? FLY_TUNER_SET_FAILED : FLY_TUNER_OTHER_RANK);
            if (i != failing)
                check_double(ranks->limits_w[i][STEPS - 1], 300.0);
        }
        munmap(ranks, sizeof *ranks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_agree),
        cmocka_unit_test(test_rank_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

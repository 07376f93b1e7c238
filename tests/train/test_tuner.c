/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a live search: epochs, checks, drift, ranks, marks. */
#include "test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank_join.h"
#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};

static void start_with(struct tuner_profile *profile, struct tuner_bench *bench, const char *sensor)
{
    tuner_profile_made(profile, 1);
    tuner_bench_start(bench, profile, sensor);
}

static void start_made(struct tuner_profile *profile, struct tuner_bench *bench)
{
    start_with(profile, bench, "exact");
}

/* Epochs shorter than the warm-up, of one step, and with odd ends: the same choice. */
static void test_epochs(void **state)
{
    static const unsigned epochs[] = {0, 1, 3, 7, 51, 170};
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;

    (void)state;
    start_made(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    for (size_t i = 0; i < COUNT(epochs); i++) {
        struct fly_tuner *tuner = tuner_bench_tuner(&bench, &options);
        struct fly_tuner_report report = tuner_bench_settle(&bench, tuner, epochs[i]);

        assert_int_equal(report.state, FLY_TUNER_SETTLED);
        check_double(report.limit_w, tuner_profile_best_w(&profile, &energy));
        check_double(report.start_limit_w, 300.0);
        assert_true(report.search_time_s > 0.0 && report.search_energy_j > 0.0);
        /* No evaluation in it. */
        assert_true(report.search_time_s < (double)report.search_steps * profile.step_s[profile.count - 1]);
        fly_tuner_free(tuner);
        check_double(tuner_bench_limit_w(&bench), 300.0);
    }
    tuner_bench_stop(&bench);
}

/* A training that ends at any moment leaves the limit of its start. */
static void test_ends_in_mid_profile(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;

    (void)state;
    start_made(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    for (int steps = 0; steps < 480; steps += 7) {
        struct fly_tuner *tuner;

        tuner_bench_reset(&bench, 1);
        emulator_set_limit_w(bench.emulator, 0, 275.0, NULL);
        tuner = tuner_bench_tuner(&bench, &options);
        for (int i = 0; i < steps; i++)
            tuner_bench_step(&bench, tuner);
        check_double(tuner_bench_report(tuner).start_limit_w, 275.0);
        fly_tuner_free(tuner);
        check_double(tuner_bench_limit_w(&bench), 275.0);
    }
    tuner_bench_stop(&bench);
}

/* Limits with room above what is drawn are marked as never having bound, and cost no warm-up. */
static void test_unbound_limits(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_tuner_report report;
    struct fly_tuner_point points[TUNER_LIMITS_MAX];

    (void)state;
    tuner_profile_made(&profile, 1);
    for (size_t i = 0; i < profile.count; i++) {
        profile.power_w[i][0] = fmin(profile.limit_w[i], 130.0);
        profile.step_s[i] = profile.limit_w[i] >= 130.0 ? 0.1 : 0.1 * 130.0 / profile.limit_w[i];
    }
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    report = tuner_bench_settle(&bench, tuner, 0);
    assert_int_equal(fly_tuner_points(tuner, points, TUNER_LIMITS_MAX), profile.count);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    for (size_t i = 0; i < profile.count; i++) {
        if (points[i].mark == FLY_TUNER_VALID)
            assert_int_equal(points[i].bound, points[i].limit_w > 150.0   ? FLY_TUNER_UNBOUND
                                              : points[i].limit_w < 130.0 ? FLY_TUNER_BOUND
                                                                          : points[i].bound);
    }
    assert_true(report.search_steps < 451 - 40);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* A limit that reads back as another is no point of the profile. */
static void test_not_honoured(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;

    (void)state;
    start_made(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    for (double clamp_w = 250.0; clamp_w >= 150.0; clamp_w -= 50.0) {
        struct fly_tuner *tuner;
        struct fly_tuner_point points[TUNER_LIMITS_MAX];
        struct fly_tuner_report report;

        tuner_bench_reset(&bench, 1);
        bench.clamp_w = clamp_w;
        tuner = tuner_bench_tuner(&bench, &options);
        report = tuner_bench_settle(&bench, tuner, 0);
        assert_int_equal(fly_tuner_points(tuner, points, TUNER_LIMITS_MAX), profile.count);
        for (size_t i = 0; i < profile.count && points[i].limit_w > clamp_w; i++)
            assert_int_equal(points[i].mark, FLY_TUNER_NOT_HONOURED);
        assert_int_equal(report.state, FLY_TUNER_SETTLED);
        assert_true(report.limit_w <= clamp_w);
        fly_tuner_free(tuner);
    }
    /* No bound can be held against a highest limit that was not honoured. */
    tuner_bench_reset(&bench, 1);
    bench.clamp_w = 250.0;
    options.objective.max_slowdown = 1.05;
    {
        struct fly_tuner *tuner = tuner_bench_tuner(&bench, &options);
        struct fly_tuner_report report = tuner_bench_settle(&bench, tuner, 0);

        assert_int_equal(report.reason, FLY_TUNER_NO_CHOICE);
        check_contains(report.text, "not honoured");
        fly_tuner_free(tuner);
    }
    tuner_bench_stop(&bench);
}

static unsigned step_on(struct tuner_bench *bench, struct fly_tuner *tuner, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++)
        tuner_bench_step(bench, tuner);
    return steps;
}

/* Below 5 % nothing happens; above, and only far enough from the last search, it is measured again. */
static void test_drift(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    (void)state;
    start_made(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    options.check_every_steps = 100;
    options.remeasure_distance_steps = 1000;
    tuner = tuner_bench_tuner(&bench, &options);
    tuner_bench_settle(&bench, tuner, 0);
    bench.slower = 1.04;
    step_on(&bench, tuner, 2000);
    assert_int_equal(tuner_bench_report(tuner).searches, 1);
    bench.slower = 1.08;
    step_on(&bench, tuner, 300);
    assert_int_equal(tuner_bench_report(tuner).searches, 2);
    tuner_bench_settle(&bench, tuner, 0);
    check_double(tuner_bench_limit_w(&bench), tuner_profile_best_w(&profile, &energy));
    bench.slower = 1.0;
    step_on(&bench, tuner, 500);
    assert_int_equal(tuner_bench_report(tuner).searches, 2); /* too soon */
    step_on(&bench, tuner, 700);
    assert_int_equal(tuner_bench_report(tuner).searches, 3); /* faster counts too */
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* What was promised and is not kept is backed off, step by step, and not for ever. */
static void test_backs_off(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    struct fly_tuner_report report;
    double chosen_w;

    (void)state;
    start_made(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    options.objective.max_slowdown = 1.10;
    options.check_every_steps = 100;
    tuner = tuner_bench_tuner(&bench, &options);
    chosen_w = tuner_bench_settle(&bench, tuner, 0).limit_w;
    check_double(chosen_w, tuner_profile_best_w(&profile, &options.objective));
    report = tuner_bench_report(tuner);
    check_close(report.slowdown, profile.step_s[tuner_profile_find(&profile, chosen_w)] / profile.step_s[0],
                1e-3);
    assert_true(report.slowdown <= 1.10);
    bench.slower = 1.10 / report.slowdown + 0.015;
    step_on(&bench, tuner, 400);
    report = tuner_bench_report(tuner);
    assert_true(report.backoffs >= 1);
    assert_true(tuner_bench_limit_w(&bench) > chosen_w);
    bench.slower = 3.0; /* nothing keeps it any more */
    step_on(&bench, tuner, 3000);
    report = tuner_bench_report(tuner);
    assert_int_equal(report.backoffs <= FLY_TUNER_BACKOFFS_MAX + 1, 1);
    check_double(tuner_bench_limit_w(&bench), 300.0);
    assert_int_equal(report.reason, FLY_TUNER_GOES_ON);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

/* Ranks, each with a machine of its own. */
struct ranks {
    struct rank_join join;
    struct fly_tuner_report reports[RANKS];
    double limits_w[RANKS], ends_w[RANKS];
    struct fly_tuner_point points[RANKS][TUNER_LIMITS_MAX];
    int failing;
    const char *sensor;
};

/*
 * What a rank does, in its process. Rank 1 is the slowest; `failing` cannot set its fifth limit. With a
 * board's sensor all windows have to go on, for longer than any rank alone would have it.
 */
static void run_rank(void *data, int number)
{
    static struct tuner_profile profile;
    struct ranks *ranks = data;
    struct rank rank = {&ranks->join, number};
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    start_with(&profile, &bench, ranks->sensor);
    bench.sets_until_failing = number == ranks->failing ? 4 : -1;
    bench.slower = number == 1 ? 1.2 : 1.0;
    bench.slower *= strcmp(ranks->sensor, "board") == 0 ? 0.1 : 1.0;
    options = tuner_bench_options(&bench, energy);
    options.all_reduce = rank_all_reduce;
    options.all_reduce_data = &rank;
    options.rank = (uint32_t)number;
    options.energy_tolerance = 0.01;
    tuner = tuner_bench_tuner(&bench, &options);
    ranks->reports[number] = tuner_bench_settle(&bench, tuner, 90);
    ranks->limits_w[number] = tuner_bench_limit_w(&bench);
    fly_tuner_points(tuner, ranks->points[number], TUNER_LIMITS_MAX);
    fly_tuner_free(tuner);
    ranks->ends_w[number] = tuner_bench_limit_w(&bench);
    tuner_bench_stop(&bench);
}

static struct ranks *run_ranks(int failing, const char *sensor)
{
    struct ranks *ranks = rank_memory(sizeof *ranks);

    ranks->failing = failing;
    ranks->sensor = sensor;
    rank_join_init(&ranks->join);
    rank_processes(run_rank, ranks);
    return ranks;
}

/* Energy is that of all, time that of the slowest, and all choose the same. */
static void test_ranks(void **state)
{
    struct ranks *ranks = run_ranks(-1, "exact");
    struct tuner_profile profile;

    (void)state;
    tuner_profile_made(&profile, 1);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks->reports[i].state, FLY_TUNER_SETTLED);
        check_double(ranks->limits_w[i], ranks->limits_w[0]);
        check_double(ranks->ends_w[i], 300.0);
        assert_memory_equal(ranks->points[i], ranks->points[0], sizeof ranks->points[0]);
        check_double(ranks->reports[i].search_energy_j, ranks->reports[0].search_energy_j);
    }
    check_close(ranks->points[0][0].time_s, 1.2 * profile.step_s[0], 1e-3);
    /* 3.2 step times of energy are drawn while the slowest takes 1.2. */
    check_close(ranks->points[0][0].power_w, 3.2 / 1.2 * profile.power_w[0][0], 5e-3);
    munmap(ranks, sizeof *ranks);
}

/* Windows that go on do so on all ranks. */
static void test_ranks_grow(void **state)
{
    struct ranks *ranks = run_ranks(-1, "board");

    (void)state;
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks->reports[i].state, FLY_TUNER_SETTLED);
        assert_true(ranks->reports[i].search_steps > 200);
        assert_true(ranks->reports[i].search_steps == ranks->reports[0].search_steps);
        assert_memory_equal(ranks->points[i], ranks->points[0], sizeof ranks->points[0]);
    }
    munmap(ranks, sizeof *ranks);
}

/* One rank's fault stops all, each at the limit it started with. */
static void test_rank_fails(void **state)
{
    (void)state;
    for (int failing = 0; failing < RANKS; failing++) {
        struct ranks *ranks = run_ranks(failing, "exact");

        for (int i = 0; i < RANKS; i++) {
            assert_int_equal(ranks->reports[i].state, FLY_TUNER_STOPPED);
            assert_int_equal(ranks->reports[i].reason,
                             i == failing ? FLY_TUNER_SET_FAILED : FLY_TUNER_OTHER_RANK);
            if (i != failing)
                check_double(ranks->limits_w[i], 300.0);
        }
        munmap(ranks, sizeof *ranks);
    }
}

/* The copy in a forked child turns nothing. */
static void test_fork(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner *tuner;
    double limit_w;
    int status = -1;
    pid_t child;

    (void)state;
    start_made(&profile, &bench);
    options = tuner_bench_options(&bench, energy);
    tuner = tuner_bench_tuner(&bench, &options);
    step_on(&bench, tuner, 40);
    limit_w = tuner_bench_limit_w(&bench);
    assert_true(limit_w < 300.0);
    child = fork();
    if (child == 0) {
        bool inert = fly_tuner_step_begin(tuner) == FLY_ESTATE && fly_tuner_epoch_end(tuner) == FLY_ESTATE;

        fly_tuner_free(tuner);
        _exit(inert ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_double(tuner_bench_limit_w(&bench), limit_w);
    fly_tuner_free(tuner);
    tuner_bench_stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),         cmocka_unit_test(test_ends_in_mid_profile),
        cmocka_unit_test(test_unbound_limits), cmocka_unit_test(test_not_honoured),
        cmocka_unit_test(test_drift),          cmocka_unit_test(test_backs_off),
        cmocka_unit_test(test_ranks),          cmocka_unit_test(test_ranks_grow),
        cmocka_unit_test(test_rank_fails),     cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trainings that stop making steps while their tuner lives on: the limit is put back, the GPUs are free for
 * others, and with the next step tuning goes on. In virtual time, but for the thread that looks.
 */
#include "knob_support.h"

#include <sys/mman.h>
#include <time.h>

#include "rank_join.h"
#include "train/tuner/tuner_private.h"
#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};

static struct tuner_profile profile;
static struct tuner_bench bench;

static struct fly_tuner *start(double give_back_s)
{
    struct fly_tuner_options options;

    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    options.give_back_s = give_back_s;
    return tuner_bench_tuner(&bench, &options);
}

static void stop(struct fly_tuner *tuner)
{
    fly_tuner_free(tuner);
    check_double(tuner_bench_limit_w(&bench), 300.0);
    tuner_bench_stop(&bench);
}

/* No step comes for so long; there are looks, as by a thread in real time. */
static void idle(struct fly_tuner *tuner, double duration_s)
{
    idle_turner_look(tuner->idle);
    emulator_set_load(bench.emulator, 0, 40.0);
    tuner_bench_pass(&bench, duration_s);
    idle_turner_look(tuner->idle);
}

static void steps(struct fly_tuner *tuner, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        tuner_bench_step(&bench, tuner);
}

static void search_until_turned(struct fly_tuner *tuner)
{
    for (unsigned i = 0; tuner_bench_limit_w(&bench) == 300.0; i++) {
        assert_true(i < 10000);
        steps(tuner, 1);
    }
}

static struct fly_tuner_report settle(struct fly_tuner *tuner)
{
    for (unsigned i = 0; fly_tuner_state(tuner) != FLY_TUNER_SETTLED; i++) {
        assert_true(i < 10000 && fly_tuner_state(tuner) != FLY_TUNER_STOPPED);
        steps(tuner, 1);
    }
    return tuner_bench_report(tuner);
}

static void check_given_back(const struct fly_tuner *tuner, unsigned times)
{
    struct fly_tuner_report report = tuner_bench_report(tuner);

    check_double(tuner_bench_limit_w(&bench), 300.0);
    assert_true(report.given_back);
    assert_int_equal(report.give_backs, times);
    assert_int_equal(report.reason, FLY_TUNER_GOES_ON);
    check_double(report.limit_w, 300.0);
}

/* A search that is interrupted at any step finds what one finds that is not; the pause is in no figure. */
static void test_search(void **state)
{
    double best_w;

    (void)state;
    for (unsigned after = 0; after < 120; after += 7) {
        struct fly_tuner *tuner = start(0.0);
        struct fly_tuner_point points[TUNER_LIMITS_MAX];
        struct fly_tuner_report report;
        double before_w;

        best_w = tuner_profile_best_w(&profile, &energy);
        search_until_turned(tuner);
        steps(tuner, after);
        before_w = tuner_bench_limit_w(&bench);
        idle(tuner, 29.0);
        check_double(tuner_bench_limit_w(&bench), before_w);
        idle(tuner, 100.0);
        check_given_back(tuner, before_w != 300.0);
        steps(tuner, 1);
        assert_false(tuner_bench_report(tuner).given_back);
        report = settle(tuner);
        check_double(report.limit_w, best_w);
        check_double(tuner_bench_limit_w(&bench), best_w);
        assert_int_equal(report.give_backs, 1);
        if (!isnan(report.search_time_s))
            assert_true(report.search_time_s < 100.0);
        for (size_t i = 0; i < fly_tuner_points(tuner, points, TUNER_LIMITS_MAX); i++) {
            if (points[i].mark == FLY_TUNER_VALID)
                check_close(points[i].time_s, profile.step_s[i], 0.01);
        }
        stop(tuner);
    }
}

/* A cell that finished training, and idles for hours; then the next one trains on. */
static void test_settled(void **state)
{
    struct fly_tuner *tuner = start(0.0);
    double best_w;

    (void)state;
    best_w = settle(tuner).limit_w;
    steps(tuner, 5);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(fly_tuner_epoch_end(tuner), 0);
        idle(tuner, 3600.0);
        check_given_back(tuner, i);
        steps(tuner, 5);
        check_double(tuner_bench_limit_w(&bench), best_w);
        assert_int_equal(fly_tuner_state(tuner), FLY_TUNER_SETTLED);
    }
    idle(tuner, 3600.0);
    stop(tuner);
}

/* An evaluation that outlasts the usual patience interrupts once; steps that take long never do. */
static void test_patience(void **state)
{
    struct fly_tuner *tuner = start(0.0);

    (void)state;
    (void)settle(tuner);
    for (unsigned i = 0; i < 5; i++) {
        idle(tuner, 45.0);
        assert_int_equal(tuner_bench_report(tuner).give_backs, 1);
        steps(tuner, 20);
    }
    idle(tuner, 100.0);
    assert_int_equal(tuner_bench_report(tuner).give_backs, 2);
    stop(tuner);
    tuner = start(0.0);
    bench.slower = 200.0; /* 40 s */
    search_until_turned(tuner);
    steps(tuner, 20);
    idle(tuner, 600.0);
    assert_int_equal(tuner_bench_report(tuner).give_backs, 0);
    idle(tuner, 600.0);
    assert_int_equal(tuner_bench_report(tuner).give_backs, 1);
    bench.slower = 1.0;
    stop(tuner);
}

static void test_option(void **state)
{
    struct fly_tuner *tuner = start(5.0);

    (void)state;
    (void)settle(tuner);
    idle(tuner, 4.5);
    assert_int_equal(tuner_bench_report(tuner).give_backs, 0);
    idle(tuner, 0.7);
    check_given_back(tuner, 1);
    stop(tuner);
    tuner = start(INFINITY);
    (void)settle(tuner);
    idle(tuner, 1e4);
    assert_int_equal(tuner_bench_report(tuner).give_backs, 0);
    stop(tuner);
}

/* What another program has set stays, and ends tuning. */
static void test_foreign(void **state)
{
    struct fly_tuner *tuner = start(0.0);
    struct fly_tuner_report report;

    (void)state;
    (void)settle(tuner);
    assert_int_equal(emulator_set_limit_w(bench.emulator, 0, 275.0, NULL), 0);
    idle(tuner, 100.0);
    check_double(tuner_bench_limit_w(&bench), 275.0);
    steps(tuner, 1);
    report = tuner_bench_report(tuner);
    assert_int_equal(report.state, FLY_TUNER_STOPPED);
    check_contains(report.text, "another program");
    fly_tuner_free(tuner);
    check_double(tuner_bench_limit_w(&bench), 275.0);
    tuner_bench_stop(&bench);
}

/* The limit that stands when steps come again is the one that goes back. */
static void test_new_start(void **state)
{
    struct fly_tuner *tuner = start(0.0);
    double best_w;

    (void)state;
    best_w = settle(tuner).limit_w;
    idle(tuner, 100.0);
    assert_int_equal(emulator_set_limit_w(bench.emulator, 0, 275.0, NULL), 0);
    steps(tuner, 1);
    check_double(tuner_bench_limit_w(&bench), best_w);
    fly_tuner_free(tuner);
    check_double(tuner_bench_limit_w(&bench), 275.0);
    tuner_bench_stop(&bench);
}

/* A turner of one value, whose next calls fail so often. */
struct plain {
    double value;
    int failing_sets, failing_reads;
};

static int plain_set(void *data, double setting, struct fly_error *out_error)
{
    struct plain *plain = data;
    bool fails = plain->failing_sets > 0;

    (void)out_error;
    plain->failing_sets -= fails;
    plain->value = fails ? plain->value : setting;
    return fails ? FLY_EREAD : 0;
}

static int plain_standing(void *data, double *out_setting, struct fly_error *out_error)
{
    struct plain *plain = data;
    bool fails = plain->failing_reads > 0;

    (void)out_error;
    plain->failing_reads -= fails;
    *out_setting = fails ? *out_setting : plain->value;
    return fails ? FLY_EREAD : 0;
}

static const struct fly_turner plain_turner = {.set = plain_set, .standing = plain_standing};

/* What stood goes back although nobody read it before it was turned, and until every turner has done so. */
static void test_own_turners(void **state)
{
    static const struct {
        int failing_sets[IDLE_SIDES], failing_reads[IDLE_SIDES];
        double hours; /* 5: never, as nobody knows what stood */
    } rows[] = {
        {{0, 0}, {0, 0}, 1}, {{1, 0}, {0, 0}, 2}, {{0, 1}, {0, 0}, 2},
        {{2, 1}, {0, 0}, 3}, {{0, 0}, {1, 0}, 5},
    };

    struct fly_tuner *tuner = start(0.0); /* for its clock */

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct plain plain[IDLE_SIDES];
        struct idle_turner idle;
        uint64_t begun = 1;
        double hours = 0.0;

        idle_turner_init(&idle, &(struct idle_options){.steps = &begun, .clock = &bench.clock});
        for (int side = 0; side < IDLE_SIDES; side++) {
            const struct fly_turner *turner = &plain_turner;
            void *data = &plain[side];

            plain[side] = (struct plain){.value = 300.0, .failing_reads = rows[i].failing_reads[side]};
            idle_turner_add(&idle, &turner, &data);
            assert_int_equal(turner->set(data, 150.0, NULL), 0);
            plain[side].failing_sets = rows[i].failing_sets[side];
        }
        idle_turner_look(&idle);
        for (; !idle_turner_is_idle(&idle) && hours < 5.0; idle_turner_look(&idle), hours++)
            tuner_bench_pass(&bench, 3600.0);
        check_double(hours, rows[i].hours);
        check_double(plain[0].value, hours < 5.0 ? 300.0 : 150.0);
        check_double(plain[1].value, 300.0);
        idle_turner_end(&idle);
    }
    stop(tuner);
}

/* ---- ranks ---- */

struct ranks {
    struct rank_join join;
    double limits_w[RANKS];
    uint32_t give_backs[RANKS];
};

/* Rank 1 alone sees pauses; the others, which wait for it, do not notice. */
static void run_rank(void *data, int number)
{
    struct ranks *ranks = data;
    struct rank rank = {&ranks->join, number};
    struct fly_tuner_options options;
    struct fly_tuner *tuner;

    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    options.all_reduce = rank_all_reduce;
    options.all_reduce_data = &rank;
    options.rank = (uint32_t)number;
    tuner = tuner_bench_tuner(&bench, &options);
    for (unsigned i = 0; i < 1500; i++) {
        if (number == 1 && i % 111 == 110)
            idle(tuner, 2000.0);
        tuner_bench_step(&bench, tuner);
    }
    if (fly_tuner_state(tuner) != FLY_TUNER_SETTLED)
        print_error("rank %d: %s\n", number, tuner_bench_report(tuner).text);
    assert_int_equal(fly_tuner_state(tuner), FLY_TUNER_SETTLED);
    ranks->limits_w[number] = tuner_bench_limit_w(&bench);
    ranks->give_backs[number] = tuner_bench_report(tuner).give_backs;
    stop(tuner);
}

static void test_ranks(void **state)
{
    struct ranks *ranks = rank_memory(sizeof *ranks);

    (void)state;
    rank_join_init(&ranks->join);
    rank_processes(run_rank, ranks);
    for (int i = 0; i < RANKS; i++) {
        check_double(ranks->limits_w[i], ranks->limits_w[0]);
        assert_int_equal(ranks->give_backs[i], i == 1 ? 13 : 0);
    }
    munmap(ranks, sizeof *ranks);
}

/* ---- in real time ---- */

static struct knob_machine machine;
static struct fly_meter *meter;

static struct fly_tuner *start_live(double give_back_s)
{
    struct fly_meter_options options = {.size = sizeof options};
    struct fly_tuner_options tuning = {.size = sizeof tuning, .objective = energy, .profile_steps = 2};
    struct fly_tuner *tuner;
    struct fly_error error;

    knob_machine_start(&machine, "gpus=1,model=a40", NULL);
    emulator_set_load(machine.emulator, 0, 250.0);
    setenv("FLYBALL_RUNTIME_DIR", machine.locks, 1);
    setenv("XDG_RUNTIME_DIR", machine.directory, 1);
    setenv("FLYBALL_GUARD", machine.guard, 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", machine.directory, 1);
    options.nvml_path = machine.library;
    if (fly_meter_open(&options, &meter, &error) < 0)
        fail_msg("%s", error.text);
    tuning.meter = meter;
    tuning.give_back_s = give_back_s;
    if (fly_tuner_new(&tuning, &tuner, &error) < 0)
        fail_msg("%s", error.text);
    return tuner;
}

static void stop_live(void)
{
    fly_meter_close(meter);
    knob_machine_stop(&machine);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void step_until_turned(struct fly_tuner *tuner)
{
    do {
        assert_int_equal(fly_tuner_step_begin(tuner), 0);
        nap();
    } while (emulator_limit_w(machine.emulator, 0) == 300.0);
}

/* A minute at most. */
static void wait_until_given_back(const struct fly_tuner *tuner)
{
    for (int i = 0; !tuner_bench_report(tuner).given_back; i++) {
        assert_true(i < 30000);
        nap();
    }
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);
}

/* A thread gives back; then the GPU is free for others, and with the next step tuning goes on. */
static void test_thread(void **state)
{
    struct fly_tuner *tuner = start_live(0.3);
    int64_t limit_mw = 200000;
    struct knob *knob;

    (void)state;
    for (int i = 0; i < 2; i++) {
        step_until_turned(tuner);
        wait_until_given_back(tuner);
        knob = knob_machine_open(&machine);
        assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
        assert_int_equal(knob_set(knob, &limit_mw, NULL), 0);
        check_double(emulator_limit_w(machine.emulator, 0), 200.0);
        knob_close(knob, NULL);
    }
    step_until_turned(tuner);
    fly_tuner_free(tuner);
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    stop_live();
}

/* Where nothing was turned yet, the GPU is free all the same. */
static void test_nothing_turned(void **state)
{
    struct fly_tuner *tuner = start_live(0.2);
    struct knob *knob;

    (void)state;
    wait_until_given_back(tuner);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_may_turn(knob, 0, NULL), 0);
    knob_close(knob, NULL);
    step_until_turned(tuner);
    fly_tuner_free(tuner);
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);
    stop_live();
}

/* Somebody else has the GPU by the time steps come again: it is only measured, and the report says why. */
static void test_taken(void **state)
{
    struct fly_tuner *tuner = start_live(0.2);
    struct fly_tuner_report report;
    int64_t limit_mw = 200000;
    struct knob *knob;

    (void)state;
    step_until_turned(tuner);
    wait_until_given_back(tuner);
    knob = knob_machine_open(&machine);
    assert_int_equal(knob_set(knob, &limit_mw, NULL), 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(fly_tuner_step_begin(tuner), 0);
    report = tuner_bench_report(tuner);
    assert_int_equal(report.state, FLY_TUNER_STOPPED);
    assert_int_equal(report.reason, FLY_TUNER_NO_KNOB);
    check_contains(report.text, "GPU");
    check_double(emulator_limit_w(machine.emulator, 0), 200.0);
    fly_tuner_free(tuner);
    check_double(emulator_limit_w(machine.emulator, 0), 200.0);
    knob_close(knob, NULL);
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);
    stop_live();
}

/* A child has no such thread, and puts nothing back. */
static void test_fork(void **state)
{
    struct fly_tuner *tuner = start_live(INFINITY);
    double limit_w;
    int status;
    pid_t child;

    (void)state;
    step_until_turned(tuner);
    limit_w = emulator_limit_w(machine.emulator, 0);
    child = fork();
    if (child == 0) {
        fly_tuner_free(tuner);
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    check_double(emulator_limit_w(machine.emulator, 0), limit_w);
    fly_tuner_free(tuner);
    check_double(emulator_limit_w(machine.emulator, 0), 300.0);
    stop_live();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),   cmocka_unit_test(test_settled),
        cmocka_unit_test(test_patience), cmocka_unit_test(test_option),
        cmocka_unit_test(test_foreign),  cmocka_unit_test(test_new_start),
        cmocka_unit_test(test_ranks),    cmocka_unit_test(test_nothing_turned),
        cmocka_unit_test(test_thread),   cmocka_unit_test(test_taken),
        cmocka_unit_test(test_fork),     cmocka_unit_test(test_own_turners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One power limit for all GPUs of a meter, on emulated GPUs. */
#include <flyball/power_knob.h>

#include "knob_support.h"

static struct {
    struct knob_machine machine;
    struct fly_meter *meter;
} bench;

static void start(const char *settings, const char *gpus)
{
    struct fly_meter_options options = {.size = sizeof options, .gpus = gpus};
    struct fly_error error;

    memset(&bench, 0, sizeof bench);
    knob_machine_start(&bench.machine, settings, NULL);
    setenv("FLYBALL_RUNTIME_DIR", bench.machine.locks, 1);
    setenv("XDG_RUNTIME_DIR", bench.machine.directory, 1);
    setenv("FLYBALL_GUARD", bench.machine.guard, 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", bench.machine.directory, 1);
    options.nvml_path = bench.machine.library;
    if (fly_meter_open(&options, &bench.meter, &error) < 0)
        fail_msg("%s", error.text);
}

static void stop(void)
{
    fly_meter_close(bench.meter);
    knob_machine_stop(&bench.machine);
}

static struct fly_power_knob *open_knob(void)
{
    struct fly_power_knob *knob = NULL;
    struct fly_error error;

    if (fly_power_knob_open(bench.meter, &knob, &error) < 0)
        fail_msg("%s", error.text);
    return knob;
}

static void check_limits(double first_w, double second_w)
{
    check_double(emulator_limit_w(bench.machine.emulator, 0), first_w);
    check_double(emulator_limit_w(bench.machine.emulator, 1), second_w);
}

static void test_turned_and_put_back(void **state)
{
    double lowest_w, highest_w, limit_w;
    struct fly_power_knob *knob;
    struct fly_error error;

    (void)state;
    start("gpus=2,model=a100", NULL);
    knob = open_knob();
    check_limits(400.0, 400.0);
    assert_int_equal(fly_power_knob_range(knob, &lowest_w, &highest_w, NULL), 0);
    check_double(lowest_w, 100.0);
    check_double(highest_w, 400.0);
    assert_int_equal(fly_power_knob_set(knob, 250.0, NULL), 0);
    check_limits(250.0, 250.0);
    assert_int_equal(fly_power_knob_limit(knob, &limit_w, NULL), 0);
    check_double(limit_w, 250.0);
    assert_int_equal(fly_power_knob_set(knob, 401.0, NULL), FLY_EUSAGE);
    assert_int_equal(fly_power_knob_set(knob, 0.0, &error), FLY_EUSAGE);
    assert_string_equal(error.text, "a power limit of 0 W is none; give watts");
    assert_int_equal(fly_power_knob_set(knob, NAN, NULL), FLY_EUSAGE);
    check_limits(250.0, 250.0);
    fly_power_knob_close(knob);
    check_limits(400.0, 400.0);
    fly_power_knob_close(NULL);
    stop();
}

/* A clock of the GPUs or of their memory between two; lifted again by none, and by the close. */
static void test_clocks(void **state)
{
    struct fly_power_knob *knob;
    uint32_t clocks_mhz[2], memory_mhz[1];
    struct fly_error error;

    (void)state;
    start("gpus=2,model=a100", NULL);
    assert_true(fly_meter_clocks(bench.meter, 0, FLY_CLOCK_GPU, NULL, 0) > 2);
    assert_true(fly_meter_clocks(bench.meter, 0, FLY_CLOCK_GPU, clocks_mhz, 2) > 2);
    assert_true(clocks_mhz[0] > clocks_mhz[1] && clocks_mhz[1] > 0);
    assert_true(fly_meter_clocks(bench.meter, 1, FLY_CLOCK_MEMORY, memory_mhz, 1) >= 1);
    assert_int_equal(fly_meter_clocks(bench.meter, 99, FLY_CLOCK_GPU, clocks_mhz, 2), 0);
    knob = open_knob();
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_GPU, 0, 0, NULL), 0);
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_GPU, clocks_mhz[1], clocks_mhz[1], NULL), 0);
    assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 0), clocks_mhz[1]);
    assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 1), clocks_mhz[1]);
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_MEMORY, 0, memory_mhz[0], NULL), 0);
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_GPU, 1, 100000, &error), FLY_EUSAGE);
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_GPU, 0, 0, NULL), 0);
    assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 0), 0);
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_GPU, 0, clocks_mhz[1], NULL), 0);
    fly_power_knob_close(knob);
    assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 1), 0);
    knob = open_knob();
    assert_int_equal(fly_power_knob_follow_steps(knob, INFINITY, NULL), 0);
    assert_int_equal(fly_power_knob_hold_clock(knob, FLY_CLOCK_GPU, 0, clocks_mhz[1], NULL), FLY_ESTATE);
    fly_power_knob_close(knob);
    stop();
}

/* The meter's GPUs alone, and nobody else's. */
static void test_only_its_own(void **state)
{
    struct fly_power_knob *knob, *other = NULL;

    (void)state;
    start("gpus=2,model=a100", "1");
    knob = open_knob();
    assert_int_equal(fly_power_knob_open(bench.meter, &other, NULL), FLY_ESTATE);
    assert_null(other);
    assert_int_equal(fly_power_knob_set(knob, 300.0, NULL), 0);
    check_limits(400.0, 300.0);
    fly_power_knob_close(knob);
    check_limits(400.0, 400.0);
    stop();
}

static void test_without_gpus(void **state)
{
    struct fly_power_knob *knob = NULL;

    (void)state;
    start("gpus=1,model=a100", "none");
    assert_int_equal(fly_power_knob_open(bench.meter, &knob, NULL), FLY_EUNSUPPORTED);
    assert_null(knob);
    stop();
}

static void test_fork(void **state)
{
    struct fly_power_knob *knob;
    int status = 0;
    pid_t child;

    (void)state;
    start("gpus=2,model=a100", NULL);
    knob = open_knob();
    assert_int_equal(fly_power_knob_set(knob, 300.0, NULL), 0);
    child = fork();
    if (child == 0) {
        bool inert = fly_power_knob_set(knob, 200.0, NULL) == FLY_ESTATE;

        fly_power_knob_close(knob);
        _exit(inert ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_limits(300.0, 300.0);
    fly_power_knob_close(knob);
    check_limits(400.0, 400.0);
    stop();
}

/* A training that makes no steps keeps no limit, and the GPUs are free for others; the next step sets it
 * again. */
static void test_follows_steps(void **state)
{
    struct fly_power_knob *knob, *other = NULL;
    double lowest_w, highest_w, limit_w;
    struct fly_error error;

    (void)state;
    start("gpus=2,model=a100", NULL);
    knob = open_knob();
    assert_int_equal(fly_power_knob_give_back(knob, NULL), FLY_ESTATE);
    assert_int_equal(fly_power_knob_step_begin(knob, NULL), 0);
    assert_int_equal(fly_power_knob_follow_steps(knob, -1.0, NULL), FLY_EUSAGE);
    assert_int_equal(fly_power_knob_follow_steps(knob, NAN, NULL), FLY_EUSAGE);
    assert_int_equal(fly_power_knob_follow_steps(knob, 0.1, NULL), 0);
    assert_int_equal(fly_power_knob_follow_steps(knob, 0.1, NULL), FLY_ESTATE);
    assert_int_equal(fly_power_knob_set(knob, 250.0, NULL), 0);
    for (int times = 0; times < 3; times++) {
        assert_true(limit_becomes(&bench.machine, 0, 400.0, 60.0));
        assert_true(limit_becomes(&bench.machine, 1, 400.0, 60.0));
        while (fly_power_knob_open(bench.meter, &other, NULL) < 0)
            usleep(1000); /* the limits are back a little before the GPUs are released */
        assert_int_equal(fly_power_knob_limit(knob, &limit_w, NULL), 0);
        check_double(limit_w, 400.0);
        assert_int_equal(fly_power_knob_range(knob, &lowest_w, &highest_w, NULL), 0);
        check_double(lowest_w, 100.0);
        check_double(highest_w, 400.0);
        assert_int_equal(fly_power_knob_set(knob, 50.0, NULL), FLY_EUSAGE);
        assert_int_equal(fly_power_knob_set(knob, 300.0 - times, NULL), 0);
        check_limits(400.0, 400.0);
        assert_int_equal(fly_power_knob_step_begin(knob, &error), FLY_ESTATE); /* the other has them */
        fly_power_knob_close(other);
        assert_int_equal(fly_power_knob_step_begin(knob, NULL), 1);
    }
    assert_true(limit_becomes(&bench.machine, 0, 400.0, 60.0));
    fly_power_knob_close(knob);
    check_limits(400.0, 400.0);
    stop();
}

/* At once, and never by itself. What somebody else has set in between stands. */
static void test_given_back_at_once(void **state)
{
    struct fly_power_knob *knob;

    (void)state;
    start("gpus=2,model=a100", NULL);
    knob = open_knob();
    assert_int_equal(fly_power_knob_follow_steps(knob, INFINITY, NULL), 0);
    assert_int_equal(fly_power_knob_set(knob, 250.0, NULL), 0);
    assert_int_equal(fly_power_knob_step_begin(knob, NULL), 0);
    assert_int_equal(fly_power_knob_give_back(knob, NULL), 0);
    assert_int_equal(fly_power_knob_give_back(knob, NULL), 0);
    check_limits(400.0, 400.0);
    assert_int_equal(fly_power_knob_step_begin(knob, NULL), 1);
    check_limits(250.0, 250.0);
    for (unsigned gpu = 0; gpu < 2; gpu++)
        assert_int_equal(emulator_set_limit_w(bench.machine.emulator, gpu, 222.0, NULL), 0);
    assert_int_equal(fly_power_knob_give_back(knob, NULL), 0);
    assert_int_equal(fly_power_knob_step_begin(knob, NULL), FLY_ESTATE);
    fly_power_knob_close(knob);
    check_limits(222.0, 222.0);
    stop();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turned_and_put_back),
        cmocka_unit_test(test_only_its_own),
        cmocka_unit_test(test_without_gpus),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_follows_steps),
        cmocka_unit_test(test_given_back_at_once),
        cmocka_unit_test(test_clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of a CPU's energy from a scripted /proc/stat, in virtual time. */
#include <stdio.h>
#include <unistd.h>

#include "device/backend.h"
#include "device/cpu/proc_stat.h"
#include "fake_tree.h"
#include "test.h"

enum { CPUS = 4 };

static const double tdp_w = 100.0, idle_share = 0.12;

static struct device_list list;
static struct mono_time now;

static struct mono_time virtual_now(void *state)
{
    (void)state;
    return now;
}

static const struct clock virtual_clock = {.name = "virtual", .now = virtual_now};

static int set_up(void **state)
{
    (void)state;
    fake_tree_make();
    now.ns = 5000000000;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_tree_remove();
    return 0;
}

/* Seconds summed over the processors, as the kernel writes them. */
static void put_stat(double user_s, double system_s, double idle_s, double steal_s)
{
    const double hertz = (double)sysconf(_SC_CLK_TCK);
    char text[512];

    snprintf(text, sizeof text,
             "cpu  %.0f 0 %.0f %.0f 0 0 0 %.0f 0 0\ncpu0 1 2\ncpu1 1 2\ncpu2 1 2\ncpu3 1 2\nintr 77\n",
             user_s * hertz, system_s * hertz, idle_s * hertz, steal_s * hertz);
    fake_tree_put("proc/stat", text);
}

static int open_estimate(double power_w, struct fly_error *out_error)
{
    struct device_options options = {
        .sysfs_root = fake_tree_root(), .cpu_tdp_w = power_w, .clock = &virtual_clock};

    memset(&list, 0, sizeof list);
    return device_backend_cpu_estimate.open(&options, &list, out_error);
}

static struct reading read_energy(void)
{
    struct device_reading reading;

    device_read(&list.devices[0], &virtual_clock, QUANTITY_BIT(QUANTITY_ENERGY), &reading);
    return reading.values[QUANTITY_ENERGY];
}

static double energy_j(void)
{
    struct reading energy = read_energy();

    assert_int_equal(energy.state, READING_OK);
    return (double)energy.value * 1e-6;
}

static void test_known_values(void **state)
{
    static const struct {
        double user_s, system_s, idle_s, steal_s; /* in 10 s, of all four processors */
        double power_w;
    } cases[] = {
        {0.0, 0.0, 40.0, 0.0, 12.0},   {40.0, 0.0, 0.0, 0.0, 100.0}, {20.0, 0.0, 20.0, 0.0, 56.0},
        {10.0, 10.0, 20.0, 0.0, 56.0}, {20.0, 0.0, 0.0, 20.0, 56.0}, /* what was stolen is not ours */
        {10.0, 0.0, 30.0, 0.0, 34.0},                                /* one of the four */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_stat(1000.0, 100.0, 5000.0, 0.0);
        assert_int_equal(open_estimate(tdp_w, NULL), 0);
        check_double(energy_j(), 0.0);
        now.ns += 10000000000;
        put_stat(1000.0 + cases[i].user_s, 100.0 + cases[i].system_s, 5000.0 + cases[i].idle_s,
                 cases[i].steal_s);
        check_close(energy_j() / 10.0, cases[i].power_w, 1e-6);
        device_list_close(&list);
    }
}

/* Never above the stated power, never below its idle share, never backwards, whatever the course. */
static void test_bounds(void **state)
{
    double busy_s = 0.0, last_j = 0.0, start_s = (double)now.ns * 1e-9;
    uint64_t seed = 4;

    (void)state;
    put_stat(0.0, 0.0, 0.0, 0.0);
    assert_int_equal(open_estimate(tdp_w, NULL), 0);
    for (int i = 0; i < 300; i++) {
        double step_s = test_uniform(&seed) * 2.0, time_s, got_j;

        busy_s += test_uniform(&seed) * step_s * CPUS;
        now.ns += (int64_t)(step_s * 1e9);
        time_s = (double)now.ns * 1e-9 - start_s;
        put_stat(busy_s, 0.0, 0.0, 0.0);
        got_j = energy_j();
        assert_true(got_j >= last_j);
        assert_true(got_j >= idle_share * tdp_w * time_s - 1e-5);
        assert_true(got_j <= tdp_w * time_s + 0.5); /* a tick's rounding */
        last_j = got_j;
    }
    /* Times that step back, as after a processor went, leave the energy where it was. */
    put_stat(0.0, 0.0, 0.0, 0.0);
    check_double(energy_j(), last_j);
    device_list_close(&list);
}

static void test_says_what_it_is(void **state)
{
    (void)state;
    put_stat(1.0, 1.0, 1.0, 0.0);
    assert_int_equal(open_estimate(120.0, NULL), 0);
    assert_int_equal(list.devices[0].info.kind, DEVICE_CPU);
    assert_true(list.devices[0].info.estimated);
    assert_string_equal(list.devices[0].info.name, "CPU, estimated from use and a stated 120 W");
    check_contains(list.devices[0].info.note, "nothing is measured");
    assert_null(strstr(list.devices[0].info.note, "stolen"));
    assert_true(list.devices[0].info.sensor.gain_error > 0.0);
    device_list_close(&list);
    put_stat(1.0, 1.0, 1.0, 7.0);
    assert_int_equal(open_estimate(120.0, NULL), 0);
    check_contains(list.devices[0].info.note, "stolen");
    device_list_close(&list);
}

static void test_refusals(void **state)
{
    static const double powers[] = {0.0, -5.0, NAN, INFINITY, 1e9};
    struct fly_error error = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(powers); i++) {
        assert_int_equal(open_estimate(powers[i], &error), FLY_EUNSUPPORTED);
        check_contains(error.text, "cpu_tdp_w");
    }
    assert_int_equal(open_estimate(tdp_w, &error), FLY_EREAD);
    check_contains(error.text, "/proc/stat");
    fake_tree_put("proc/stat", "intr 5\n");
    assert_int_equal(open_estimate(tdp_w, &error), FLY_EREAD);
    fake_tree_put("proc/stat", "cpu  1 2 3 4\n");
    assert_int_equal(open_estimate(tdp_w, &error), FLY_EREAD);
    assert_int_equal(list.count, 0);
}

/* A file that turns into something else is a failed reading, not a leap. */
static void test_garbage_later(void **state)
{
    static const char *const texts[] = {
        "", "cpu", "cpu  1 2 3\n", "cpu  1 2 x 4\n", "cpu  -1 2 3 4\n", "cpu  99999999999999999999 1 1 1\n"};

    (void)state;
    put_stat(10.0, 0.0, 0.0, 0.0);
    assert_int_equal(open_estimate(tdp_w, NULL), 0);
    for (size_t i = 0; i < COUNT(texts); i++) {
        fake_tree_put("proc/stat", texts[i]);
        assert_int_equal(read_energy().state, READING_FAILED);
    }
    device_list_close(&list);
}

/* This machine's own: what its kernel writes can be read. */
static void test_this_machine(void **state)
{
    struct device_options options = {.cpu_tdp_w = tdp_w};

    (void)state;
    if (access("/proc/stat", R_OK) < 0)
        skip();
    memset(&list, 0, sizeof list);
    assert_int_equal(device_backend_cpu_estimate.open(&options, &list, NULL), 0);
    assert_true(device_answers(&list.devices[0], &clock_real));
    device_list_close(&list);
}

static void test_processors_are_counted(void **state)
{
    static const struct {
        const char *text;
        unsigned count;
    } cases[] = {{"cpu  1\ncpu0 1\ncpu1 1\nintr 1\n", 2},
                 {"cpu  1", 0},
                 {"", 0},
                 {"cpu 1\n\ncpu0\n", 1},
                 {"cpu0", 1},
                 {"cpufreq\ncpu7 cpu8\n", 1}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(proc_stat_processors(cases[i].text), cases[i].count);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_known_values),
        TREE_TEST(test_bounds),
        TREE_TEST(test_says_what_it_is),
        TREE_TEST(test_refusals),
        TREE_TEST(test_garbage_later),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_processors_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

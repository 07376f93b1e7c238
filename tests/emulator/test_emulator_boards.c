/* SPDX-License-Identifier: Apache-2.0 */
/* Emulated boards as boards are: a regulator that takes its time, calls that do, noise, a limit that is
 * enforced. */
#include "emulator_support.h"

#include "device/nvidia/nvml_abi.h"
#include "emulator/boards.h"
#include "emulator/gpu.h"
#include "model/gpu_model.h"

/* Seconds after the emulator's start. */
static struct mono_time at_s(double s)
{
    return mono_after_s((struct mono_time){INT64_C(1000000000000)}, s);
}

static double power_w(struct emulator *emulator, double s)
{
    return emulator_truth_power_w(emulator, 0, at_s(s));
}

static double energy_j(struct emulator *emulator, double from_s, double to_s)
{
    return emulator_truth_energy_j(emulator, 0, at_s(to_s)) -
           emulator_truth_energy_j(emulator, 0, at_s(from_s));
}

/* A load that wants more than the limit goes above it first, and so does one whose limit is lowered. */
static void test_limits_overshoot_and_settle(void **state)
{
    struct emulator *emulator =
        start("gpus=1,model=a100,time=virtual,ideal=no,set-ms=0,limit-settle-ms=100,settle-ms=10", NULL);
    double most_w = 0.0;

    (void)state;
    assert_int_equal(emulator_set_limit_w(emulator, 0, 250.0, NULL), 0);
    emulator_advance_s(emulator, 1.0);
    emulator_set_load(emulator, 0, 380.0);
    emulator_advance_s(emulator, 2.0);
    for (double s = 1.0; s < 2.0; s += 0.001)
        most_w = fmax(most_w, power_w(emulator, s));
    assert_true(most_w > 300.0 && most_w < 380.0);
    check_close(power_w(emulator, 2.9), 250.0, 1e-6);
    assert_int_equal(emulator_set_limit_w(emulator, 0, 200.0, NULL), 0);
    emulator_advance_s(emulator, 2.0);
    assert_true(power_w(emulator, 3.05) > 215.0 && power_w(emulator, 3.05) < 250.0);
    check_close(power_w(emulator, 4.9), 200.0, 1e-6);
    /* Raised, the power follows as slowly, and never above what is wanted. */
    assert_int_equal(emulator_set_limit_w(emulator, 0, 400.0, NULL), 0);
    emulator_advance_s(emulator, 2.0);
    assert_true(power_w(emulator, 5.05) > 210.0 && power_w(emulator, 5.05) < 340.0);
    check_close(power_w(emulator, 6.9), 380.0, 1e-6);
    for (double s = 5.0; s < 7.0; s += 0.001)
        assert_true(power_w(emulator, s) <= 380.0 + 1e-9);
    stop(emulator);
}

/* The pace is that of the power: what is drawn above the limit does work. */
static void test_work_is_as_fast_as_its_power(void **state)
{
    struct emulator *emulator =
        start("gpus=1,model=a100,time=virtual,ideal=no,set-ms=0,limit-settle-ms=200", NULL);
    double settled;

    (void)state;
    emulator_set_load(emulator, 0, 380.0);
    emulator_advance_s(emulator, 5.0);
    check_double(emulator_slowdown(emulator, 0), 1.0);
    assert_int_equal(emulator_set_limit_w(emulator, 0, 200.0, NULL), 0);
    check_close(emulator_slowdown(emulator, 0), 1.0, 1e-9);
    emulator_advance_s(emulator, 0.2);
    settled = 1.0 / gpu_clock(emulator_shape(emulator, 0), 380.0, 200.0);
    assert_true(emulator_slowdown(emulator, 0) > 1.01 && emulator_slowdown(emulator, 0) < settled - 0.01);
    emulator_advance_s(emulator, 5.0);
    check_close(emulator_slowdown(emulator, 0), settled, 1e-6);
    stop(emulator);
}

/* Energy and temperature stay exact however the regulator is at work. */
static void test_energy_is_the_integral_of_power(void **state)
{
    struct emulator *emulator =
        start("gpus=1,model=b200,time=virtual,ideal=no,set-ms=0,limit-settle-ms=150,settle-ms=40", NULL);
    const struct emulated_board *board = gpu_board(&emulator->state->gpus[0]);
    uint64_t random = 11;
    const double step_s = 1e-4;
    double sum_j = 0.0, temperature_c = board->ambient_c + board->heating_c_per_w * 140.0;

    (void)state;
    for (int i = 0; i < 60; i++) {
        emulator_set_load(emulator, 0, i % 5 == 4 ? 0.0 : 200.0 + 800.0 * test_uniform(&random));
        assert_int_equal(emulator_set_limit_w(emulator, 0, 200.0 + 800.0 * test_uniform(&random), NULL), 0);
        emulator_advance_s(emulator, 0.2 * test_uniform(&random));
    }
    emulator_advance_s(emulator, 12.0);
    for (int i = 0; i < 100000; i++) {
        double at_w = power_w(emulator, (i + 0.5) * step_s);

        sum_j += at_w * step_s;
        temperature_c +=
            step_s / board->thermal_s * (board->ambient_c + board->heating_c_per_w * at_w - temperature_c);
    }
    check_close(energy_j(emulator, 0.0, 10.0), sum_j, 1e-5);
    check_close(emulator_truth_temperature_c(emulator, 0, at_s(10.0)), temperature_c, 1e-4);
    stop(emulator);
}

/* Two equal times would have no closed form. */
static void test_equal_times(void **state)
{
    struct emulator *emulator = start("gpus=1,model=a100,time=virtual,limit-settle-ms=50,settle-ms=50", NULL);

    (void)state;
    assert_int_equal(emulator_set_limit_w(emulator, 0, 200.0, NULL), 0);
    emulator_set_load(emulator, 0, 380.0);
    emulator_advance_s(emulator, 5.0);
    for (double s = 0.0; s < 5.0; s += 0.01)
        assert_true(power_w(emulator, s) >= 60.0 && power_w(emulator, s) < 380.0);
    check_close(power_w(emulator, 5.0), 200.0, 1e-6);
    stop(emulator);
}

static void test_setting_takes_time(void **state)
{
    static const struct {
        const char *settings;
        double set_s;
    } cases[] = {
        {"gpus=1,time=virtual,any-user,ideal=no", 0.01},
        {"gpus=1,time=virtual,any-user,ideal=no,set-ms=35", 0.035},
        {"gpus=1,time=virtual,any-user,set-ms=7", 0.007},
        {"gpus=1,time=virtual,any-user", 0.0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct emulator *emulator = start(cases[i].settings, NULL);
        unsigned limit_mw = 0;

        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit(device(0), 250000), NVML_SUCCESS);
        check_close(mono_elapsed_s(at_s(0.0), emulator_now(emulator)), cases[i].set_s, 1e-9);
        assert_int_equal(nvml.nvmlDeviceGetPowerManagementLimit(device(0), &limit_mw), NVML_SUCCESS);
        assert_int_equal(limit_mw, 250000);
        check_close(mono_elapsed_s(at_s(0.0), emulator_now(emulator)), cases[i].set_s, 1e-9);
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
}

static unsigned field_mw(unsigned id)
{
    struct nvml_field_value field = {.field_id = id, .scope_id = NVML_SCOPE_GPU};

    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device(0), 1, &field), NVML_SUCCESS);
    assert_int_equal(field.code, NVML_SUCCESS);
    return field.value.ui;
}

static void check_limits(unsigned requested_mw, unsigned enforced_mw)
{
    unsigned limit_mw = 0;

    assert_int_equal(nvml.nvmlDeviceGetPowerManagementLimit(device(0), &limit_mw), NVML_SUCCESS);
    assert_int_equal(limit_mw, requested_mw);
    assert_int_equal(nvml.nvmlDeviceGetEnforcedPowerLimit(device(0), &limit_mw), NVML_SUCCESS);
    assert_int_equal(limit_mw, enforced_mw);
    assert_int_equal(field_mw(NVML_FIELD_POWER_LIMIT_REQUESTED), requested_mw);
    assert_int_equal(field_mw(NVML_FIELD_POWER_LIMIT_ENFORCED), enforced_mw);
}

/* 500 W enforced with 700 W asked for: what is asked for reads back, what is enforced binds. */
static void test_enforced_below_requested(void **state)
{
    struct emulator *emulator = start("gpus=1,model=h100,time=virtual,any-user,enforced-w=500", NULL);

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    emulator_set_load(emulator, 0, 680.0);
    emulator_advance_s(emulator, 2.0);
    check_limits(700000, 500000);
    check_close(power_w(emulator, 2.0), 500.0, 1e-6);
    assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit(device(0), 600000), NVML_SUCCESS);
    check_limits(600000, 500000);
    assert_int_equal(nvml.nvmlDeviceSetPowerManagementLimit(device(0), 400000), NVML_SUCCESS);
    emulator_advance_s(emulator, 2.0);
    check_limits(400000, 400000);
    check_close(power_w(emulator, 4.0), 400.0, 1e-6);
    emulator_set_enforced_w(emulator, 0, 300.0);
    emulator_advance_s(emulator, 2.0);
    check_limits(400000, 300000);
    check_close(power_w(emulator, 6.0), 300.0, 1e-6);
    emulator_set_enforced_w(emulator, 0, 0.0);
    check_limits(400000, 400000);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* Every board's readings have the noise that its row says, around the truth. */
static void test_noise_of_boards(void **state)
{
    (void)state;
    for (const struct emulated_board *board = emulated_boards; board->name != NULL; board++) {
        char settings[96];
        double sum = 0.0, squares = 0.0, load_w = gpu_shape_find(board->name)->lowest_limit_w;
        struct emulator *emulator;

        snprintf(settings, sizeof settings, "gpus=1,model=%s,time=virtual,sensor=part-time,ideal=no",
                 board->name);
        emulator = start(settings, NULL);
        emulator_set_load(emulator, 0, load_w);
        emulator_advance_s(emulator, 5.0);
        for (int i = 0; i < 2000; i++) {
            double off_w;

            emulator_advance_s(emulator, 0.1);
            off_w = emulator_power_mw(emulator, 0) / 1000.0 - load_w;
            sum += off_w;
            squares += off_w * off_w;
        }
        assert_true(board->noise_w >= 1.0 && board->noise_w <= 3.0);
        assert_true(fabs(sum / 2000) < 0.1 * board->noise_w);
        check_close(sqrt(squares / 2000), board->noise_w, 0.06);
        stop(emulator);
    }
}

/* Energy of the same work over the limit has its least value inside of the range on every board. */
static void test_energy_has_its_least_value_inside(void **state)
{
    (void)state;
    for (const struct emulated_board *board = emulated_boards; board->name != NULL; board++) {
        const struct gpu_shape *shape = gpu_shape_find(board->name);
        const struct gpu_load load = {
            .sample_s = 1e-3, .step_s = 1e-3, .half_busy_batch = 1.0, .nature = {.clock_share = 0.9}};
        double least_j = INFINITY, least_w = 0.0, first_j = 0.0, last_j = 0.0;

        for (unsigned i = 0; i < gpu_limit_count(shape); i++) {
            struct fly_power_point point = gpu_work(shape, &load, 100.0, 64.0, gpu_limit_w(shape, i));
            double work_j = point.power_w * point.time_s;

            if (i == 0)
                first_j = work_j;
            last_j = work_j;
            if (work_j < least_j) {
                least_j = work_j;
                least_w = point.limit_w;
            }
        }
        print_message(
            "# %-10s least energy at %3g W: %4.1f %% less than at %g W, %5.1f %% less than at %g W\n",
            board->name, least_w, 100.0 * (1.0 - least_j / last_j), shape->highest_limit_w,
            100.0 * (1.0 - least_j / first_j), shape->lowest_limit_w);
        assert_true(least_w > shape->lowest_limit_w && least_w < shape->highest_limit_w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_overshoot_and_settle),
        cmocka_unit_test(test_work_is_as_fast_as_its_power),
        cmocka_unit_test(test_energy_is_the_integral_of_power),
        cmocka_unit_test(test_equal_times),
        cmocka_unit_test(test_setting_takes_time),
        cmocka_unit_test(test_enforced_below_requested),
        cmocka_unit_test(test_noise_of_boards),
        cmocka_unit_test(test_energy_has_its_least_value_inside),
    };

    return emulator_support_begin() != 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

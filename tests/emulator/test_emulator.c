/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated GPUs' truth against its closed form, and their sensors against integrals of the truth. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emulator/boards.h"
#include "emulator/control.h"
#include "emulator/sensor.h"
#include "model/gpu_model.h"

static char state_path[64];

static struct emulator *start(const char *settings_text)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator = NULL;
    struct fly_error error = {.code = 0};

    snprintf(state_path, sizeof state_path, "/tmp/flyball-test-emulator-%d", (int)getpid());
    unlink(state_path);
    settings.ideal = true;
    if (emulator_settings_parse(&settings, settings_text, &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0)
        fail_msg("%s", error.text);
    return emulator;
}

static void stop(struct emulator *emulator)
{
    emulator_close(emulator);
    assert_int_equal(emulator_remove(state_path, NULL), 0);
}

/* Seconds after the emulator's start. */
static struct mono_time at_s(double s)
{
    return mono_after_s((struct mono_time){INT64_C(1000000000000)}, s);
}

/* A load of 310 W from idle 60 W: P and E of the header's formulas, by hand. */
static void test_closed_form(void **state)
{
    struct emulator *emulator = start("gpus=1,model=a100,time=virtual,settle-ms=50");

    (void)state;
    check_double(emulator_truth_power_w(emulator, 0, at_s(0.0)), 60.0);
    check_double(emulator_truth_energy_j(emulator, 0, at_s(2.0)), 120.0);
    check_double(emulator_truth_energy_j(emulator, 0, at_s(-1.0)), -60.0);
    emulator_advance_s(emulator, 2.0);
    emulator_set_load(emulator, 0, 310.0);
    emulator_advance_s(emulator, 1.0);
    check_close(emulator_truth_power_w(emulator, 0, at_s(2.05)), 310.0 - 250.0 * exp(-1.0), 1e-7);
    check_close(emulator_truth_energy_j(emulator, 0, at_s(3.0)),
                120.0 + 310.0 - 250.0 * 0.05 * (1.0 - exp(-20.0)), 1e-12);
    emulator_set_load(emulator, 0, 0.0);
    emulator_advance_s(emulator, 10.0);
    check_close(emulator_truth_energy_j(emulator, 0, at_s(13.0)),
                120.0 + 310.0 - 12.5 * (1.0 - exp(-20.0)) + 600.0 + 12.5 * (1.0 - exp(-20.0)), 1e-9);
    stop(emulator);
}

/* Loads and limits at random moments, planned ahead; the truth's energy against steps of its power. */
static void test_energy_is_the_integral_of_power(void **state)
{
    struct emulator *emulator = start("gpus=2,model=v100,time=virtual");
    const int steps = 200000;
    const double length_s = 20.0;
    uint64_t random = 7;

    (void)state;
    for (int i = 0; i < 200; i++) {
        double moment_s = test_uniform(&random) * length_s;

        assert_int_equal(emulator_plan_load(emulator, 1, at_s(moment_s), test_uniform(&random) * 300.0, NULL),
                         0);
    }
    for (int i = 0; i < 40; i++) {
        emulator_advance_s(emulator, length_s / 40);
        assert_int_equal(emulator_set_limit_w(emulator, 1, 100.0 + test_uniform(&random) * 150.0, NULL), 0);
    }
    for (int part = 0; part < 4; part++) {
        double from_s = part * length_s / 4, sum_j = 0.0, step_s = length_s / 4 / steps;

        for (int i = 0; i < steps; i++)
            sum_j += emulator_truth_power_w(emulator, 1, at_s(from_s + (i + 0.5) * step_s)) * step_s;
        check_close(emulator_truth_energy_j(emulator, 1, at_s(from_s + length_s / 4)) -
                        emulator_truth_energy_j(emulator, 1, at_s(from_s)),
                    sum_j, 1e-6);
    }
    check_double(emulator_truth_energy_j(emulator, 0, at_s(length_s)), 40.0 * length_s);
    stop(emulator);
}

static void test_limit_bounds_power(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (const struct gpu_shape *shape = gpu_shapes + 1; shape->name != NULL; shape++) {
        char settings[64];
        struct emulator *emulator;

        snprintf(settings, sizeof settings, "gpus=1,time=virtual,model=%s", shape->name);
        emulator = start(settings);
        for (int i = 0; i < 200; i++) {
            double limit_w = shape->lowest_limit_w +
                             test_uniform(&random) * (shape->highest_limit_w - shape->lowest_limit_w);
            double power_w;

            emulator_set_load(emulator, 0, test_uniform(&random) * 1000.0);
            assert_int_equal(emulator_set_limit_w(emulator, 0, limit_w, NULL), 0);
            emulator_advance_s(emulator, 5.0);
            power_w = emulator_truth_power_w(emulator, 0, emulator_now(emulator));
            /* Only at its lowest clock may it draw more. */
            assert_true(power_w <=
                        fmax(limit_w, gpu_power_w(shape, shape->busy_w, shape->lowest_clock)) + 1e-3);
            assert_true(power_w >= shape->idle_w - 1e-9);
            assert_true(emulator_truth_temperature_c(emulator, 0, emulator_now(emulator)) > 20.0);
            assert_true(emulator_truth_temperature_c(emulator, 0, emulator_now(emulator)) < 100.0);
        }
        assert_int_equal(emulator_set_limit_w(emulator, 0, shape->lowest_limit_w - 1.0, NULL), FLY_EUSAGE);
        assert_int_equal(emulator_set_limit_w(emulator, 0, shape->highest_limit_w + 1.0, NULL), FLY_EUSAGE);
        stop(emulator);
    }
}

/* The sensor models: readings change at their period's pace alone and say what the truth was in their window.
 */
static const struct sensor_case {
    const char *settings;
    double period_s, window_s;
} sensor_cases[] = {
    {"gpus=2,model=a100,time=virtual,sensor=part-time,seed=5", 0.1, 0.025},
    {"gpus=2,model=a100,time=virtual,sensor=second,seed=6", 0.1, 1.0},
    {"gpus=2,model=v100,time=virtual,seed=7", 0.02, 0.01},
    {"gpus=2,model=a40,time=virtual,seed=8", 0.1, 1.0},
    {"gpus=2,model=h100,time=virtual,seed=9", 0.1, 1.0},
};

/* A saw of load that no period divides. */
static void plan_saw(struct emulator *emulator, unsigned gpu, double length_s)
{
    for (double moment_s = 0.0; moment_s < length_s; moment_s += 0.0777) {
        assert_int_equal(emulator_plan_load(emulator, gpu, at_s(moment_s), 300.0, NULL), 0);
        assert_int_equal(emulator_plan_load(emulator, gpu, at_s(moment_s + 0.031), 80.0, NULL), 0);
    }
}

static double mean_by_steps(struct emulator *emulator, unsigned gpu, int64_t end_ns, double window_s)
{
    const int steps = 400;
    double sum_w = 0.0;

    for (int i = 0; i < steps; i++) {
        struct mono_time moment = {end_ns - (int64_t)(window_s * 1e9 * (i + 0.5) / steps)};

        sum_w += emulator_truth_power_w(emulator, gpu, moment) / steps;
    }
    return sum_w;
}

static void check_sensor(const struct sensor_case *test)
{
    struct emulator *emulator = start(test->settings);
    struct emulator_sensor sensor = emulator_sensor_of(emulator, 1);
    int64_t last_change_ns = 0;
    unsigned last_mw = 0, changes = 0;

    assert_int_not_equal(sensor.power_phase_ns, emulator_sensor_of(emulator, 0).power_phase_ns);
    check_double((double)sensor.power_period_ns / 1e9, test->period_s);
    plan_saw(emulator, 1, 8.0);
    emulator_advance_s(emulator, 2.0);
    for (int i = 0; i < 5000; i++) {
        int64_t now_ns;
        unsigned power_mw;

        emulator_advance_s(emulator, 0.001);
        now_ns = emulator_now(emulator).ns;
        power_mw = emulator_power_mw(emulator, 1);
        if (power_mw != last_mw && last_mw != 0) {
            int64_t made_ns = now_ns - (now_ns - sensor.power_phase_ns) % sensor.power_period_ns;

            assert_true(now_ns - made_ns < 1000001);
            check_close(power_mw / 1000.0, mean_by_steps(emulator, 1, made_ns, test->window_s), 5e-3);
            assert_true(last_change_ns == 0 || (now_ns - last_change_ns) >= sensor.power_period_ns - 1000000);
            last_change_ns = now_ns;
            changes++;
        }
        last_mw = power_mw;
    }
    assert_true(changes > 0.9 * 5.0 / test->period_s && changes < 1.1 * 5.0 / test->period_s);
    stop(emulator);
}

static void test_power_readings(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sensor_cases); i++)
        check_sensor(&sensor_cases[i]);
}

static void test_exact_sensor_is_the_truth(void **state)
{
    struct emulator *emulator = start("gpus=2,time=virtual,sensor=exact");
    unsigned long long start_mj = emulator_counter_mj(emulator, 1);

    (void)state;
    plan_saw(emulator, 1, 5.0);
    for (int i = 0; i < 4000; i++) {
        struct mono_time now;

        emulator_advance_s(emulator, 0.00123);
        now = emulator_now(emulator);
        check_close(emulator_power_mw(emulator, 1), emulator_truth_power_w(emulator, 1, now) * 1000.0, 1e-5);
        check_close((double)(emulator_counter_mj(emulator, 1) - start_mj),
                    emulator_truth_energy_j(emulator, 1, now) * 1000.0, 1e-2);
    }
    stop(emulator);
}

/* The counter: in steps of its period, the truth of its last update, times the gain. */
static void test_counter_of_truth(void **state)
{
    struct emulator *emulator =
        start("gpus=1,time=virtual,counter-period-ms=70,counter-drift-ppm=0,gain=1.05");
    struct emulator_sensor sensor = emulator_sensor_of(emulator, 0);
    double start_j;

    (void)state;
    plan_saw(emulator, 0, 10.0);
    start_j = (double)emulator_counter_mj(emulator, 0) / 1000.0;
    start_j -= 1.05 * emulator_truth_energy_j(
                          emulator, 0,
                          (struct mono_time){at_s(0.0).ns - (at_s(0.0).ns - sensor.counter.phase_ns) %
                                                                sensor.counter.period_ns});
    for (int i = 0; i < 3000; i++) {
        int64_t now_ns, made_ns;

        emulator_advance_s(emulator, 0.0031);
        now_ns = emulator_now(emulator).ns;
        made_ns = now_ns - (now_ns - sensor.counter.phase_ns) % sensor.counter.period_ns;
        assert_true(fabs((double)emulator_counter_mj(emulator, 0) / 1000.0 - start_j -
                         1.05 * emulator_truth_energy_j(emulator, 0, (struct mono_time){made_ns})) < 2.1e-3);
    }
    stop(emulator);
}

/* A counter of part-time readings sees a load in step with them wrongly, and one out of step about rightly.
 */
static void test_counter_of_readings(void **state)
{
    static const struct {
        double period_s, lowest, highest; /* of the load; of counter over truth */
    } cases[] = {{0.1, 0.0, 10.0}, {0.0777, 0.97, 1.03}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct emulator *emulator =
            start("gpus=1,time=virtual,sensor=part-time,counter=power,counter-period-ms=100,settle-ms=1");
        double start_j, ratio;

        for (int cycle = 0; cycle < 500; cycle++) {
            emulator_plan_load(emulator, 0, at_s(cycle * cases[i].period_s), 360.0, NULL);
            emulator_plan_load(emulator, 0, at_s((cycle + 0.25) * cases[i].period_s), 80.0, NULL);
        }
        start_j = (double)emulator_counter_mj(emulator, 0) / 1000.0;
        emulator_advance_s(emulator, 499 * cases[i].period_s);
        ratio = ((double)emulator_counter_mj(emulator, 0) / 1000.0 - start_j) /
                emulator_truth_energy_j(emulator, 0, emulator_now(emulator));
        assert_true(ratio > cases[i].lowest && ratio < cases[i].highest);
        if (i == 0)
            assert_true(fabs(ratio - 1.0) > 0.1);
        stop(emulator);
    }
}

/* Summing lazily over hours gives what asking often does. */
static void test_counter_of_readings_over_hours(void **state)
{
    struct emulator *often = start("gpus=1,time=virtual,counter=power,sensor=second");
    unsigned long long rare_mj;

    (void)state;
    emulator_set_load(often, 0, 200.0);
    for (int i = 0; i < 72000; i++) {
        emulator_advance_s(often, 0.05);
        (void)emulator_counter_mj(often, 0);
    }
    rare_mj = emulator_counter_mj(often, 0);
    stop(often);
    often = start("gpus=1,time=virtual,counter=power,sensor=second");
    emulator_set_load(often, 0, 200.0);
    emulator_advance_s(often, 3600.0);
    assert_true(llabs((long long)(emulator_counter_mj(often, 0) - rare_mj)) <= 1);
    stop(often);
}

static void test_noise_is_seeded(void **state)
{
    double sum = 0.0, squares = 0.0;
    unsigned readings[2][1000];

    (void)state;
    for (int run = 0; run < 2; run++) {
        struct emulator *emulator = start("gpus=1,time=virtual,sensor=part-time,noise-w=2,seed=11");

        for (int i = 0; i < 1000; i++) {
            emulator_advance_s(emulator, 0.1);
            readings[run][i] = emulator_power_mw(emulator, 0);
        }
        stop(emulator);
    }
    assert_memory_equal(readings[0], readings[1], sizeof readings[0]);
    for (int i = 0; i < 1000; i++) {
        sum += readings[0][i] / 1000.0 - 60.0;
        squares += pow(readings[0][i] / 1000.0 - 60.0, 2);
    }
    assert_true(fabs(sum / 1000) < 0.25);
    assert_true(fabs(sqrt(squares / 1000) - 2.0) < 0.2);
}

/* A counter that starts again, sensors changed in flight, and truth beyond what the history keeps. */
static void test_control(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,counter-period-ms=0");
    struct emulator_sensor sensor = emulator_sensor_of(emulator, 0);
    struct fly_error error;
    unsigned long long before_mj;

    (void)state;
    emulator_advance_s(emulator, 10.0);
    before_mj = emulator_counter_mj(emulator, 0);
    assert_true(before_mj >= 600000);
    sensor.counter_from_power = true;
    emulator_set_sensor(emulator, 0, &sensor);
    assert_true(llabs((long long)(emulator_counter_mj(emulator, 0) - before_mj)) <= 1);
    emulator_reset_counter(emulator, 0);
    assert_int_equal(emulator_counter_mj(emulator, 0), 0);
    emulator_advance_s(emulator, 10.0);
    assert_true(fabs((double)emulator_counter_mj(emulator, 0) / 1000.0 - 600.0) < 7.0);
    for (int i = 0; i < EMULATOR_PLANNED_MAX; i++)
        assert_int_equal(emulator_plan_load(emulator, 0, at_s(100.0), 100.0, NULL), 0);
    assert_int_equal(emulator_plan_load(emulator, 0, at_s(100.0), 100.0, &error), FLY_ELIMIT);
    for (int i = 0; i < EMULATOR_SEGMENTS + 10; i++) {
        emulator_advance_s(emulator, 0.01);
        emulator_set_load(emulator, 0, 100.0 + i % 2);
    }
    assert_true(isnan(emulator_truth_energy_j(emulator, 0, at_s(1.0))));
    assert_true(emulator_truth_energy_j(emulator, 0, emulator_now(emulator)) > 0.0);
    stop(emulator);
}

/* The temperature against small steps of its differential equation, a load and an idle time long. */
static void test_temperature(void **state)
{
    struct emulator *emulator = start("gpus=1,model=a100,time=virtual,settle-ms=500");
    const struct emulated_board *board = &emulated_boards[emulator_settings_of(emulator)->board];
    const double step_s = 1e-3;
    double temperature_c = board->ambient_c + board->heating_c_per_w * 60.0;

    (void)state;
    check_close(emulator_truth_temperature_c(emulator, 0, at_s(0.0)), temperature_c, 1e-12);
    assert_int_equal(emulator_plan_load(emulator, 0, at_s(1.0), 380.0, NULL), 0);
    assert_int_equal(emulator_plan_load(emulator, 0, at_s(20.0), 0.0, NULL), 0);
    emulator_advance_s(emulator, 40.0);
    for (int i = 0; i < 40000; i++) {
        double power_w = emulator_truth_power_w(emulator, 0, at_s((i + 0.5) * step_s));
        double middle_c =
            temperature_c + step_s / 2 / board->thermal_s *
                                (board->ambient_c + board->heating_c_per_w * power_w - temperature_c);

        temperature_c +=
            step_s / board->thermal_s * (board->ambient_c + board->heating_c_per_w * power_w - middle_c);
        if (i % 1000 == 999)
            check_close(emulator_truth_temperature_c(emulator, 0, at_s((i + 1) * step_s)), temperature_c,
                        1e-6);
    }
    stop(emulator);
}

static void test_settings(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"gpus=17", "bad value '17' for the emulator's setting 'gpus': expected a number from 0 to 16"},
        {"model=a1000", "expected v100, v100-sxm2, a40, a100, h100, h200, gh200 or b200"},
        {"modle=a100", "unknown setting 'modle' of the emulator; did you mean 'model'?"},
        {"time", "bad value 'yes' for the emulator's setting 'time': expected real or virtual"},
        {"gain=1e9", "expected a number from 0.1 to 10"},
        {"gpus=1,faults=/nonexistent,latency-us=-1", "setting 'latency-us'"},
    };
    struct emulator_settings settings = emulator_default_settings;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_error error = {.text = ""};

        assert_int_equal(emulator_settings_parse(&settings, cases[i].text, &error), FLY_EUSAGE);
        check_contains(error.text, cases[i].message);
        assert_memory_equal(&settings, &emulator_default_settings, sizeof settings);
    }
    assert_int_equal(emulator_settings_parse(&settings, "gpus=8,model=h100,any-user,,time=virtual,", NULL),
                     0);
    assert_int_equal(settings.gpus, 8);
    assert_true(settings.any_user && settings.virtual_time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_energy_is_the_integral_of_power),
        cmocka_unit_test(test_limit_bounds_power),
        cmocka_unit_test(test_power_readings),
        cmocka_unit_test(test_exact_sensor_is_the_truth),
        cmocka_unit_test(test_counter_of_truth),
        cmocka_unit_test(test_counter_of_readings),
        cmocka_unit_test(test_counter_of_readings_over_hours),
        cmocka_unit_test(test_noise_is_seeded),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

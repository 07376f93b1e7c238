/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over devices whose true energy is known, in virtual time. */
#include "test.h"

#include <stdlib.h>

#include "fake_device.h"
#include "meter/meter.h"

/* A meter over some made-up GPUs, in virtual time. */
struct bench_top {
    struct fake_time time;
    struct clock clock;
    struct fake_load load;
    struct fake_device fakes[4];
    struct device_list list;
    struct fly_meter *meter;
};

static const struct fake_device counting = {
    .counter_period_s = 0.02, .power_period_s = 0.1, .power_window_s = 0.025};
static const struct fake_device sensing = {.power_period_s = 0.1, .power_window_s = 0.025};

static void set_up(struct bench_top *top, const struct fake_device *like, size_t count)
{
    memset(top, 0, sizeof *top);
    top->time.now_ns = 10000000000;
    top->clock = fake_clock(&top->time);
    fake_load_init(&top->load);
    fake_load_add(&top->load, 1000.0, 100.0);
    for (size_t i = 0; i < count; i++) {
        top->fakes[i] = *like;
        top->fakes[i].load = &top->load;
        top->fakes[i].time = &top->time;
        fake_list_add(&top->list, &top->fakes[i]);
    }
}

static void open_meter(struct bench_top *top, uint32_t windows_max)
{
    const struct meter_parts parts = {
        .devices = &top->list, .clock = &top->clock, .threadless = true, .windows_max = windows_max};

    assert_int_equal(meter_new(&parts, &top->meter, NULL), 0);
}

static void tear_down(struct bench_top *top)
{
    fly_meter_close(top->meter);
    for (size_t i = 0; i < COUNT(top->fakes); i++)
        fake_device_deinit(&top->fakes[i]);
    fake_load_deinit(&top->load);
}

/* Lets time pass, sampling when it is due. */
static void pass(struct bench_top *top, double duration_s)
{
    int64_t until_ns = top->time.now_ns + (int64_t)(duration_s * 1e9);

    while (meter_next_sample(top->meter).ns <= until_ns) {
        top->time.now_ns = meter_next_sample(top->meter).ns;
        meter_sample(top->meter);
    }
    top->time.now_ns = until_ns;
}

static fly_window begin(struct bench_top *top, const char *name)
{
    fly_window window = 0;

    assert_int_equal(fly_meter_begin(top->meter, name, &window, NULL), 0);
    assert_int_not_equal(window, 0);
    return window;
}

static struct fly_device_energy end(struct bench_top *top, fly_window window)
{
    struct fly_device_energy energy;
    struct fly_measurement measured = {.size = sizeof measured, .devices = &energy, .device_capacity = 1};

    assert_int_equal(fly_meter_end(top->meter, window, &measured, NULL), 0);
    return energy;
}

static void test_constant(void **state)
{
    const struct fake_device *const kinds[] = {&counting, &sensing};
    const enum fly_energy_source sources[] = {FLY_ENERGY_COUNTER, FLY_ENERGY_INTEGRATED};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct bench_top top;
        struct fly_device_energy energy;
        fly_window window;

        set_up(&top, kinds[i], 1);
        open_meter(&top, 0);
        window = begin(&top, "steady");
        pass(&top, 5.0);
        energy = end(&top, window);
        assert_int_equal(energy.source, sources[i]);
        check_close(energy.energy_j, 500.0, 0.01);
        check_close(energy.time_s, 5.0, 1e-9);
        check_close(energy.mean_power_w, 100.0, 0.01);
        assert_true(energy.uncertainty_j >= 0.0);
        check_double(energy.gain_error, 0.05);
        assert_string_equal(energy.note, "");
        tear_down(&top);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

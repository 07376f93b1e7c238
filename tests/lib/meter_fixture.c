/* SPDX-License-Identifier: Apache-2.0 */
#include "meter_fixture.h"

#include "test.h"

const struct fake_device fixture_counting = {
    .counter_period_s = 0.02, .power_period_s = 0.1, .power_window_s = 0.025};
const struct fake_device fixture_sensing = {.power_period_s = 0.1, .power_window_s = 0.025};

void fixture_set_up(struct meter_fixture *fixture, const struct fake_device *like, size_t count)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->time.now_ns = 10000000000;
    fixture->clock = fake_clock(&fixture->time);
    fake_load_init(&fixture->load);
    fake_load_add(&fixture->load, 1000.0, 100.0);
    for (size_t i = 0; i < count; i++) {
        fixture->fakes[i] = *like;
        fixture->fakes[i].load = &fixture->load;
        fixture->fakes[i].time = &fixture->time;
        fixture->fakes[i].temperature_c = 40;
        fixture->fakes[i].utilization = 100;
        fake_list_add(&fixture->list, &fixture->fakes[i]);
    }
}

void fixture_open(struct meter_fixture *fixture, uint32_t windows_max)
{
    const struct meter_parts parts = {
        .devices = &fixture->list, .clock = &fixture->clock, .threadless = true, .windows_max = windows_max};

    assert_int_equal(meter_new(&parts, &fixture->meter, NULL), 0);
}

void fixture_tear_down(struct meter_fixture *fixture)
{
    fly_meter_close(fixture->meter);
    for (size_t i = 0; i < COUNT(fixture->fakes); i++)
        fake_device_deinit(&fixture->fakes[i]);
    fake_load_deinit(&fixture->load);
}

void fixture_pass(struct meter_fixture *fixture, double duration_s)
{
    int64_t until_ns = fixture->time.now_ns + (int64_t)(duration_s * 1e9);

    while (meter_next_sample(fixture->meter).ns <= until_ns) {
        fixture->clock.sleep_until(fixture->clock.state, meter_next_sample(fixture->meter));
        meter_sample(fixture->meter);
    }
    fixture->time.now_ns = until_ns;
}

fly_window fixture_begin(struct meter_fixture *fixture, const char *name)
{
    fly_window window = 0;

    assert_int_equal(fly_meter_begin(fixture->meter, name, &window, NULL), 0);
    assert_int_not_equal(window, 0);
    return window;
}

struct fly_device_energy fixture_end(struct meter_fixture *fixture, fly_window window)
{
    struct fly_device_energy energy = {0};
    struct fly_measurement measured = {.size = sizeof measured, .devices = &energy, .device_capacity = 1};

    assert_int_equal(fly_meter_end(fixture->meter, window, &measured, NULL), 0);
    return energy;
}

struct fly_device_energy fixture_measure(struct meter_fixture *fixture, double length_s)
{
    fly_window window = fixture_begin(fixture, "measured");

    fixture_pass(fixture, length_s);
    return fixture_end(fixture, window);
}

void fixture_check_truth(const struct fly_device_energy *energy, double truth_j)
{
    if (!(fabs(energy->energy_j - truth_j) <= energy->uncertainty_j))
        fail_msg("%g +- %g J do not hold %g J", energy->energy_j, energy->uncertainty_j, truth_j);
}

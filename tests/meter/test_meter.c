/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over devices whose true energy is known, in virtual time. */
#include "test.h"

#include <stdio.h>

#include "meter_fixture.h"

static void test_constant(void **state)
{
    const struct fake_device *const kinds[] = {&fixture_counting, &fixture_sensing};
    const enum fly_energy_source sources[] = {FLY_ENERGY_COUNTER, FLY_ENERGY_INTEGRATED};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct meter_fixture fixture;
        struct fly_device_energy energy;

        fixture_set_up(&fixture, kinds[i], 1);
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 5.0);
        assert_int_equal(energy.source, sources[i]);
        check_close(energy.energy_j, 500.0, 0.01);
        fixture_check_truth(&energy, 500.0);
        check_close(energy.time_s, 5.0, 1e-9);
        check_close(energy.mean_power_w, 100.0, 0.01);
        check_close(energy.integral_j, 500.0, 0.01);
        check_double(energy.gain_error, 0.05);
        check_double(energy.idle_share, 0.0);
        check_double(energy.temperature_max_c, 40.0);
        check_double(energy.limit_w, 400.0);
        assert_string_equal(energy.note, "");
        fixture_tear_down(&fixture);
    }
}

/* Nested and overlapping windows of any end, each against the truth. */
static void test_nested(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;
    fly_window outer, inner, across;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 3);
    outer = fixture_begin(&fixture, "outer");
    fixture_pass(&fixture, 1.0);
    inner = fixture_begin(&fixture, "inner");
    fixture_pass(&fixture, 1.0);
    across = fixture_begin(&fixture, "across");
    fixture_pass(&fixture, 1.0);
    energy = fixture_end(&fixture, inner);
    fixture_check_truth(&energy, 200.0);
    fixture_pass(&fixture, 1.0);
    energy = fixture_end(&fixture, outer);
    fixture_check_truth(&energy, 400.0);
    fixture_pass(&fixture, 1.0);
    energy = fixture_end(&fixture, across);
    fixture_check_truth(&energy, 300.0);
    fixture_tear_down(&fixture);
}

/* A look leaves the window as it is, and says what an end there would have said. */
static void test_peek(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy looked, ended;
    struct fly_measurement measured = {.size = sizeof measured, .devices = &looked, .device_capacity = 1};
    fly_window window, other;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 0);
    window = fixture_begin(&fixture, "window");
    other = fixture_begin(&fixture, "other");
    for (int second = 1; second <= 3; second++) {
        fixture_pass(&fixture, 1.0);
        assert_int_equal(fly_meter_peek(fixture.meter, window, &measured, NULL), 0);
        fixture_check_truth(&looked, 100.0 * second);
        check_close(measured.time_s, second, 1e-9);
        assert_string_equal(measured.name, "window");
    }
    ended = fixture_end(&fixture, other);
    check_double(looked.energy_j, ended.energy_j);
    check_double(looked.uncertainty_j, ended.uncertainty_j);
    fixture_pass(&fixture, 1.0);
    ended = fixture_end(&fixture, window);
    fixture_check_truth(&ended, 400.0);
    assert_int_equal(fly_meter_peek(fixture.meter, window, &measured, NULL), FLY_ESTATE);
    measured.size = 0;
    assert_int_equal(fly_meter_peek(fixture.meter, window, &measured, NULL), FLY_EUSAGE);
    fixture_tear_down(&fixture);
}

static void test_handles(void **state)
{
    struct meter_fixture fixture;
    struct fly_measurement measured = {.size = sizeof measured};
    struct fly_error error;
    fly_window first, second, third;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 2);
    first = fixture_begin(&fixture, "first");
    second = fixture_begin(&fixture, NULL);
    third = 77;
    assert_int_equal(fly_meter_begin(fixture.meter, "third", &third, &error), FLY_ELIMIT);
    check_contains(error.text, "'third'");
    assert_true(third == 77);
    fixture_pass(&fixture, 0.5);
    (void)fixture_end(&fixture, first);
    assert_int_equal(fly_meter_end(fixture.meter, first, &measured, &error), FLY_ESTATE);
    third = fixture_begin(&fixture, "third"); /* in the slot of the first */
    assert_true(third != first);
    assert_int_equal(fly_meter_end(fixture.meter, first, &measured, NULL), FLY_ESTATE);
    assert_int_equal(fly_meter_end(fixture.meter, 0, &measured, NULL), FLY_ESTATE);
    assert_int_equal(fly_meter_end(fixture.meter, UINT64_MAX, &measured, NULL), FLY_ESTATE);
    measured.size = 0;
    assert_int_equal(fly_meter_end(fixture.meter, second, &measured, NULL), FLY_EUSAGE);
    measured.size = sizeof measured;
    assert_int_equal(fly_meter_end(fixture.meter, second, &measured, NULL), 0);
    assert_string_equal(measured.name, "");
    assert_int_equal(fly_meter_end(fixture.meter, third, &measured, NULL), 0);
    assert_string_equal(measured.name, "third");
    fixture_tear_down(&fixture);
}

static void test_names(void **state)
{
    static const struct {
        const char *given, *kept;
    } cases[] = {
        {"", ""},
        {"epoch 3", "epoch 3"},
        {"123456789012345678901234567890123456789012345678901234567890123",
         "123456789012345678901234567890123456789012345678901234567890123"},
        {"1234567890123456789012345678901234567890123456789012345678901234",
         "123456789012345678901234567890123456789012345678901234567890123"},
        /* A letter of two bytes is not cut in the middle. */
        {"12345678901234567890123456789012345678901234567890123456789012\xc3\xa4",
         "12345678901234567890123456789012345678901234567890123456789012"},
    };
    struct meter_fixture fixture;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_measurement measured = {.size = sizeof measured};

        assert_int_equal(
            fly_meter_end(fixture.meter, fixture_begin(&fixture, cases[i].given), &measured, NULL), 0);
        assert_string_equal(measured.name, cases[i].kept);
        check_close(measured.start_unix_s, 1700000010.0, 1e-12);
    }
    fixture_tear_down(&fixture);
}

/* Fewer places than devices, and none. */
static void test_capacity(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energies[4];

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 3);
    fixture_open(&fixture, 0);
    for (size_t capacity = 0; capacity <= 4; capacity++) {
        struct fly_measurement measured = {
            .size = sizeof measured, .devices = capacity > 0 ? energies : NULL, .device_capacity = capacity};
        fly_window window = fixture_begin(&fixture, "w");

        memset(energies, 0x55, sizeof energies);
        fixture_pass(&fixture, 1.0);
        assert_int_equal(fly_meter_end(fixture.meter, window, &measured, NULL), 0);
        assert_int_equal(measured.device_count, 3);
        check_close(measured.time_s, 1.0, 1e-9);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(energies[i].source == FLY_ENERGY_COUNTER, i < 3 && i < capacity);
    }
    fixture_tear_down(&fixture);
}

static void test_no_devices(void **state)
{
    struct meter_fixture fixture;
    struct fly_measurement measured = {.size = sizeof measured};
    fly_window window;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 0);
    fixture_open(&fixture, 0);
    assert_int_equal(fly_meter_device_count(fixture.meter), 0);
    assert_null(fly_meter_device_name(fixture.meter, 0));
    window = fixture_begin(&fixture, "nothing");
    fixture.time.now_ns += 1000000000;
    meter_sample(fixture.meter);
    assert_int_equal(fly_meter_end(fixture.meter, window, &measured, NULL), 0);
    assert_int_equal(measured.device_count, 0);
    check_close(measured.time_s, 1.0, 1e-9);
    fixture_tear_down(&fixture);
}

static void test_device_facts(void **state)
{
    struct meter_fixture fixture;
    struct device_reading reading;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 2);
    fixture_open(&fixture, 0);
    assert_int_equal(fly_meter_device_count(fixture.meter), 2);
    assert_string_equal(fly_meter_device_kind(fixture.meter, 1), "GPU");
    assert_int_equal(fly_meter_device_index(fixture.meter, 1), 1);
    assert_string_equal(fly_meter_device_name(fixture.meter, 1), "Fake 1");
    assert_string_equal(fly_meter_device_uuid(fixture.meter, 1), "GPU-fake-1");
    assert_null(fly_meter_device_uuid(fixture.meter, 2));
    assert_true(meter_latest(fixture.meter, 1, &reading));
    assert_int_equal(reading.values[QUANTITY_TEMPERATURE].value, 40);
    assert_false(meter_latest(fixture.meter, 2, &reading));
    fixture_tear_down(&fixture);
}

static void test_too_short(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 0);
    fixture_pass(&fixture, 0.001);
    energy = fixture_measure(&fixture, 0.005);
    assert_int_equal(energy.source, FLY_ENERGY_UNAVAILABLE);
    assert_true(isnan(energy.energy_j) && isnan(energy.mean_power_w) && isnan(energy.idle_share));
    check_close(energy.time_s, 0.005, 1e-6);
    check_contains(energy.note, "too short: the counter did not advance");
    fixture_pass(&fixture, 0.008);
    energy = fixture_measure(&fixture, 0.010);
    assert_int_equal(energy.source, FLY_ENERGY_UNAVAILABLE);
    check_contains(energy.note, "too short");
    fixture_tear_down(&fixture);

    fixture_set_up(&fixture, &fixture_sensing, 1);
    fixture.list.devices[0].info.sensor.power_window_s = 1.0;
    fixture_open(&fixture, 0);
    energy = fixture_measure(&fixture, 0.9);
    assert_int_equal(energy.source, FLY_ENERGY_UNAVAILABLE);
    check_contains(energy.note, "shorter than what a power reading averages over");
    energy = fixture_measure(&fixture, 1.1);
    assert_int_equal(energy.source, FLY_ENERGY_INTEGRATED);
    fixture_tear_down(&fixture);
}

/* Where nothing is known yet of when a slow counter is updated, power readings tell of short windows. */
static void test_short_for_the_counter(void **state)
{
    struct fake_device slow = fixture_counting;
    struct meter_fixture fixture;
    struct fly_device_energy energy;

    (void)state;
    slow.counter_period_s = 2.0;
    fixture_set_up(&fixture, &slow, 1);
    fixture_open(&fixture, 0);
    energy = fixture_measure(&fixture, 0.03); /* nor of the load */
    assert_int_equal(energy.source, FLY_ENERGY_UNAVAILABLE);
    fixture_pass(&fixture, 1.2);
    energy = fixture_measure(&fixture, 0.03);
    assert_int_equal(energy.source, FLY_ENERGY_INTEGRATED);
    assert_string_equal(energy.note, "sampled power, since the window is too short for the counter's period");
    fixture_check_truth(&energy, 3.0);
    check_close(energy.energy_j, 3.0, 0.01);
    assert_true(energy.counter_j == 0.0);
    fixture_tear_down(&fixture);
}

static void test_estimated(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture.list.devices[0].info.estimated = true;
    snprintf(fixture.list.devices[0].info.note, sizeof fixture.list.devices[0].info.note, "made up");
    fixture_open(&fixture, 0);
    energy = fixture_measure(&fixture, 2.0);
    assert_int_equal(energy.source, FLY_ENERGY_ESTIMATED);
    check_close(energy.energy_j, 200.0, 0.02);
    assert_true(isnan(energy.uncertainty_j));
    assert_string_equal(energy.note, "made up; estimated from use; no bound is stated");
    fixture_tear_down(&fixture);
}

static void test_shares(void **state)
{
    struct meter_fixture fixture;
    struct fake_device *fake = &fixture.fakes[0];
    struct fly_device_energy energy;
    fly_window window;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 0);
    fixture_pass(&fixture, 1.0);
    window = fixture_begin(&fixture, "w");
    fixture_pass(&fixture, 1.0);
    fake->utilization = 0;
    fake->throttle = THROTTLE_POWER_CAP | THROTTLE_HEAT_HARDWARE;
    fake->temperature_c = 71;
    fixture_pass(&fixture, 2.0);
    fake->utilization = 7;
    fake->throttle = THROTTLE_POWER_BRAKE | THROTTLE_HEAT_SOFTWARE;
    fake->temperature_c = 65;
    fixture_pass(&fixture, 1.0);
    energy = fixture_end(&fixture, window);
    assert_int_equal(energy.samples, 40);
    check_close(energy.idle_share, 0.5, 1e-9);
    check_close(energy.idle_energy_share, 0.5, 0.01);
    check_close(energy.capped_share, 0.5, 1e-9);
    check_close(energy.heat_share, 0.75, 1e-9);
    check_close(energy.brake_share, 0.25, 1e-9);
    check_double(energy.temperature_max_c, 71.0);
    fake->other_state = READING_UNSUPPORTED;
    energy = fixture_measure(&fixture, 1.0);
    assert_true(isnan(energy.idle_share) && isnan(energy.idle_energy_share) && isnan(energy.capped_share));
    fixture_tear_down(&fixture);
}

/* An edge costs one question: the counter where there is one, the power otherwise. */
static void test_edges_are_cheap(void **state)
{
    const struct fake_device *const kinds[] = {&fixture_counting, &fixture_sensing};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct meter_fixture fixture;
        unsigned long reads, power_reads;

        fixture_set_up(&fixture, kinds[i], 2);
        fixture_open(&fixture, 0);
        reads = fixture.fakes[1].reads;
        power_reads = fixture.fakes[1].power_reads;
        (void)fixture_end(&fixture, fixture_begin(&fixture, "w"));
        assert_int_equal(fixture.fakes[1].reads - reads, 2);
        assert_int_equal(fixture.fakes[1].power_reads - power_reads, kinds[i] == &fixture_counting ? 0 : 2);
        fixture_tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_peek),
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_no_devices),
        cmocka_unit_test(test_device_facts),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_short_for_the_counter),
        cmocka_unit_test(test_estimated),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_edges_are_cheap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over devices that fail: counters that wrap, start again or lie, readings that are denied, late or
 * gone. */
#include "test.h"

#include "meter_fixture.h"

/* A counter that wraps every ten joules, over many windows of every length. */
static void test_wraps(void **state)
{
    struct meter_fixture fixture;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture.list.devices[0].info.energy_modulus_uj = 10000000 + 1;
    fixture.fakes[0].counter_start_uj = 1234567;
    fixture_open(&fixture, 0);
    fixture_pass(&fixture, 3.0); /* until updates are tracked */
    for (int i = 1; i < 60; i++) {
        struct fly_device_energy energy = fixture_measure(&fixture, 0.05 * i);

        assert_int_equal(energy.source, FLY_ENERGY_COUNTER);
        fixture_check_truth(&energy, 5.0 * i);
        assert_string_equal(energy.note, "");
    }
    fixture_tear_down(&fixture);
}

static void test_reset(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;

    (void)state;
    for (int with_power = 0; with_power < 2; with_power++) {
        fixture_set_up(&fixture, &fixture_counting, 1);
        fixture.fakes[0].counter_start_uj = INT64_C(5000000000);
        fixture.fakes[0].reset_s = 12.03;
        if (!with_power)
            fixture.fakes[0].power_state = READING_DENIED;
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 5.0);
        if (with_power) {
            assert_int_equal(energy.source, FLY_ENERGY_COUNTER);
            fixture_check_truth(&energy, 500.0);
            check_contains(energy.note, "the counter was reset; sampled power fills the gap");
        } else {
            assert_int_equal(energy.source, FLY_ENERGY_UNAVAILABLE);
            assert_true(isnan(energy.energy_j) && isnan(energy.uncertainty_j) && isnan(energy.mean_power_w));
            check_contains(energy.note, "the counter was reset, and no sampled power fills the gap");
        }
        energy = fixture_measure(&fixture, 5.0);
        assert_int_equal(energy.source, FLY_ENERGY_COUNTER);
        fixture_check_truth(&energy, 500.0);
        assert_string_equal(energy.note, "");
        fixture_tear_down(&fixture);
    }
}

/* What does not answer: from the start, from some moment on, in part. */
static void test_faults(void **state)
{
    static const struct {
        enum reading_state energy, power;
        bool counts, lost;
        enum fly_energy_source source;
        const char *note;
    } cases[] = {
        {READING_DENIED, READING_DENIED, true, false, FLY_ENERGY_UNAVAILABLE, "permission is missing"},
        {READING_FAILED, READING_FAILED, true, false, FLY_ENERGY_UNAVAILABLE, "the driver reported an error"},
        {READING_MISSING, READING_NOT_READ, true, false, FLY_ENERGY_INTEGRATED, ""},
        {READING_UNSUPPORTED, READING_DENIED, true, false, FLY_ENERGY_UNAVAILABLE,
         "its power could not be read: permission is missing"},
        {READING_NOT_READ, READING_DENIED, true, false, FLY_ENERGY_COUNTER, ""},
        {READING_NOT_READ, READING_NOT_READ, true, true, FLY_ENERGY_UNAVAILABLE, "the device is gone"},
        {READING_NOT_READ, READING_NOT_READ, false, true, FLY_ENERGY_UNAVAILABLE, "the device is gone"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct meter_fixture fixture;
        struct fly_device_energy energy;

        fixture_set_up(&fixture, cases[i].counts ? &fixture_counting : &fixture_sensing, 1);
        fixture.fakes[0].energy_state = cases[i].energy;
        fixture.fakes[0].power_state = cases[i].power;
        fixture.fakes[0].lost_s = cases[i].lost ? 13.95 : 0.0;
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 4.0);
        if (energy.source != cases[i].source || strstr(energy.note, cases[i].note) == NULL)
            fail_msg("case %zu: %s, '%s'", i, fly_energy_source_name(energy.source), energy.note);
        assert_true(energy.source == FLY_ENERGY_UNAVAILABLE ? isnan(energy.energy_j) : energy.energy_j > 0.0);
        check_close(energy.time_s, 4.0, 1e-9);
        fixture_tear_down(&fixture);
    }
}

/* What was measured of a device before it was lost is kept, and is no figure of the whole window. */
static void test_least_energy(void **state)
{
    for (int counts = 0; counts < 2; counts++) {
        struct meter_fixture fixture;
        struct fly_device_energy energy;

        (void)state;
        fixture_set_up(&fixture, counts ? &fixture_counting : &fixture_sensing, 1);
        fixture.fakes[0].lost_s = 13.0;
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 8.0);
        assert_int_equal(energy.source, FLY_ENERGY_UNAVAILABLE);
        assert_true(isnan(energy.energy_j) && energy.least_time_s > 0.0 && energy.least_time_s < 8.0);
        check_close(energy.least_energy_j, 100.0 * energy.least_time_s, 0.05);
        check_contains(energy.note, "not read after");
        energy = fixture_measure(&fixture, 2.0);
        assert_true(isnan(energy.least_energy_j));
        fixture_tear_down(&fixture);
    }
}

/* A counter that does not move while power is drawn is not believed, from wherever it stopped. */
static void test_counter_stands_still(void **state)
{
    static const double stuck_s[] = {1.0, 12.0};

    (void)state;
    for (size_t i = 0; i < COUNT(stuck_s); i++) {
        struct meter_fixture fixture;
        struct fly_device_energy energy;

        fixture_set_up(&fixture, &fixture_counting, 1);
        fixture.fakes[0].stuck_s = stuck_s[i];
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 20.0);
        assert_int_equal(energy.source, FLY_ENERGY_INTEGRATED);
        fixture_check_truth(&energy, 2000.0);
        check_contains(energy.note, "the counter stood still");
        assert_true(energy.disagree);
        fixture_tear_down(&fixture);
    }
}

/* What no device can have is not known, and is in no mean. */
static void test_impossible_values(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture.fakes[0].utilization = 4294967294;
    fixture.fakes[0].temperature_c = 65535;
    fixture_open(&fixture, 0);
    energy = fixture_measure(&fixture, 5.0);
    fixture_check_truth(&energy, 500.0);
    assert_true(isnan(energy.idle_share) && isnan(energy.temperature_max_c));
    fixture_tear_down(&fixture);
}

/* Where counter and power differ, the interval of the one that is chosen holds the other. */
static void test_interval_holds_both(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture.fakes[0].counter_gain = 1.5;
    fixture_open(&fixture, 0);
    energy = fixture_measure(&fixture, 20.0);
    assert_int_equal(energy.source, FLY_ENERGY_COUNTER);
    assert_true(energy.disagree);
    fixture_check_truth(&energy, 2000.0);
    fixture_check_truth(&energy, 3000.0);
    fixture_tear_down(&fixture);
}

/* A counter that fails at a window's end only: sampled power steps in, and the note says so. */
static void test_counter_fails_late(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;
    fly_window window;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture_open(&fixture, 0);
    window = fixture_begin(&fixture, "w");
    fixture_pass(&fixture, 3.0);
    fixture.fakes[0].energy_state = READING_FAILED;
    energy = fixture_end(&fixture, window);
    assert_int_equal(energy.source, FLY_ENERGY_INTEGRATED);
    fixture_check_truth(&energy, 300.0);
    check_contains(energy.note, "the counter could not be read: the driver reported an error");
    fixture_tear_down(&fixture);
}

/* A device that stops to answer: what it drew from then on is not known, and the interval says so. */
static void test_silence_at_the_end(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;
    fly_window window;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 1);
    fixture.load.count = 0;
    fixture.load.end_s = 0.0;
    fake_load_add(&fixture.load, 13.1, 100.0);
    fake_load_add(&fixture.load, 100.0, 20.0);
    fixture_open(&fixture, 0);
    window = fixture_begin(&fixture, "w");
    fixture_pass(&fixture, 3.0);
    fixture.fakes[0].energy_state = READING_ENDED;
    fixture.fakes[0].power_state = READING_ENDED;
    fixture_pass(&fixture, 1.5);
    energy = fixture_end(&fixture, window);
    assert_int_equal(energy.source, FLY_ENERGY_INTEGRATED);
    check_close(energy.energy_j, 450.0, 0.05);
    fixture_check_truth(&energy, 340.0);
    check_contains(energy.note, "power could not be sampled for 1.");
    fixture_tear_down(&fixture);
}

/* A sampler that was kept from running for seconds: filled in, told, and in the interval. */
static void test_hole(void **state)
{
    struct meter_fixture fixture;
    struct fly_device_energy energy;
    fly_window window;

    (void)state;
    fixture_set_up(&fixture, &fixture_sensing, 1);
    fixture.load.count = 0;
    fixture.load.end_s = 0.0;
    fake_load_add(&fixture.load, 22.0, 100.0);
    fake_load_add(&fixture.load, 2.0, 20.0);
    fake_load_add(&fixture.load, 100.0, 100.0);
    fixture_open(&fixture, 0);
    window = fixture_begin(&fixture, "w");
    fixture_pass(&fixture, 11.0);
    fixture.time.now_ns += 4000000000;
    fixture_pass(&fixture, 15.0);
    energy = fixture_end(&fixture, window);
    assert_int_equal(energy.source, FLY_ENERGY_INTEGRATED);
    fixture_check_truth(&energy, 3000.0 - 160.0);
    check_contains(energy.note, "power could not be sampled for 4.");
    fixture_tear_down(&fixture);
}

/* The stamp's doubt grows with a slow driver. */
static void test_slow_reading(void **state)
{
    double halves_j[2];

    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct meter_fixture fixture;
        struct fly_device_energy energy;

        fixture_set_up(&fixture, &fixture_counting, 1);
        fixture.fakes[0].latency_s = slow ? 0.2 : 0.0;
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 5.0);
        fixture_check_truth(&energy, 100.0 * energy.time_s);
        halves_j[slow] = energy.uncertainty_j;
        fixture_tear_down(&fixture);
    }
    assert_true(halves_j[1] > halves_j[0] + 10.0);
}

/* A counter that is 5 % off against its own sensor is told; one that agrees is not. */
static void test_cross_check(void **state)
{
    static const struct {
        double gain;
        const char *note;
    } cases[] = {{0.0, ""}, {1.001, ""}, {1.05, "sampled power gives -4.8 % against the counter"}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct meter_fixture fixture;
        struct fly_device_energy energy;

        fixture_set_up(&fixture, &fixture_counting, 1);
        fixture.fakes[0].counter_gain = cases[i].gain;
        fixture_open(&fixture, 0);
        energy = fixture_measure(&fixture, 20.0);
        assert_int_equal(energy.source, FLY_ENERGY_COUNTER);
        if (cases[i].note[0] == '\0')
            assert_string_equal(energy.note, "");
        check_contains(energy.note, cases[i].note);
        fixture_tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wraps),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_least_energy),
        cmocka_unit_test(test_counter_stands_still),
        cmocka_unit_test(test_impossible_values),
        cmocka_unit_test(test_interval_holds_both),
        cmocka_unit_test(test_counter_fails_late),
        cmocka_unit_test(test_silence_at_the_end),
        cmocka_unit_test(test_hole),
        cmocka_unit_test(test_slow_reading),
        cmocka_unit_test(test_cross_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

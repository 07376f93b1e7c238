/* SPDX-License-Identifier: Apache-2.0 */
/* What devices say at one moment, and the samples that a meter keeps of them, in virtual time. */
#include "test.h"

#include <math.h>

#include "meter_fixture.h"

enum { ROOM = 64 };

static void test_read(void **state)
{
    struct meter_fixture fixture;
    struct fly_power_limits limits;
    struct fly_sample sample;
    struct fly_error error;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 2);
    fixture.fakes[1].energy_state = READING_UNSUPPORTED;
    fixture_open(&fixture, 0);
    fixture_pass(&fixture, 1.0);
    assert_int_equal(fly_meter_read(fixture.meter, 0, &sample, NULL), 0);
    check_close(sample.power_w, 100.0, 1e-9);
    check_close(sample.energy_j, 100.0 * 11.0, 3.0);
    check_close(sample.temperature_c, 40.0, 1e-9);
    check_close(sample.unix_s, (double)fixture.clock.date(fixture.clock.state).ns * 1e-9, 1e-6);
    assert_int_equal(fly_meter_read(fixture.meter, 1, &sample, NULL), 0);
    assert_true(isnan(sample.energy_j));
    fixture.fakes[1].power_state = READING_FAILED;
    fixture.fakes[1].other_state = READING_LOST;
    assert_int_equal(fly_meter_read(fixture.meter, 1, &sample, NULL), 0);
    assert_true(isnan(sample.power_w) && isnan(sample.temperature_c));
    assert_true(isnan(fly_meter_device_max_power_w(fixture.meter, 0))); /* such a device does not say */
    assert_true(isnan(fly_meter_device_max_power_w(fixture.meter, 2)));
    assert_int_equal(fly_meter_power_limits(fixture.meter, 0, &limits, NULL), 0);
    assert_true(isnan(limits.lowest_w) && isnan(limits.highest_w) && isnan(limits.default_w));
    assert_int_equal(fly_meter_power_limits(fixture.meter, 2, &limits, NULL), FLY_EUSAGE);
    assert_int_equal(fly_meter_clocks(fixture.meter, 0, FLY_CLOCK_GPU, NULL, 0), 0);
    assert_int_equal(fly_meter_read(fixture.meter, 2, &sample, &error), FLY_EUSAGE);
    assert_string_equal(error.text, "device 2: the meter has 2");
    fixture_tear_down(&fixture);
}

/* The newest so many, oldest first, each with its temperature. */
static void test_kept(void **state)
{
    struct meter_fixture fixture;
    struct fly_sample samples[ROOM];
    size_t count;

    (void)state;
    fixture_set_up(&fixture, &fixture_sensing, 2);
    fixture_open(&fixture, 0);
    fixture_pass(&fixture, 1.0);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, -INFINITY, samples, ROOM), 0);
    assert_int_equal(fly_meter_keep(fixture.meter, 16, NULL), 0);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, -INFINITY, samples, ROOM), 0);
    fixture_pass(&fixture, 1.0);
    assert_int_equal(fly_meter_samples(fixture.meter, 1, -INFINITY, samples, ROOM), 10);
    fixture.fakes[0].temperature_c = 50;
    fixture_pass(&fixture, 1.0);
    count = fly_meter_samples(fixture.meter, 0, -INFINITY, samples, ROOM);
    assert_int_equal(count, 16);
    for (size_t i = 0; i < count; i++) {
        check_close(samples[i].power_w, 100.0, 1e-9);
        check_close(samples[i].temperature_c, i < 6 ? 40.0 : 50.0, 1e-9);
        assert_true(isnan(samples[i].energy_j));
        if (i > 0)
            check_close(samples[i].unix_s - samples[i - 1].unix_s, 0.1, 1e-3);
    }
    fixture_tear_down(&fixture);
}

/* Those of a date and later; what there is no room for is counted. */
static void test_since(void **state)
{
    struct meter_fixture fixture;
    struct fly_sample all[ROOM], some[ROOM];

    (void)state;
    fixture_set_up(&fixture, &fixture_sensing, 1);
    fixture_open(&fixture, 0);
    assert_int_equal(fly_meter_keep(fixture.meter, ROOM, NULL), 0);
    fixture_pass(&fixture, 1.05);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, -INFINITY, all, ROOM), 10);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, all[7].unix_s, some, ROOM), 3);
    check_close(some[0].unix_s, all[7].unix_s, 0.0);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, all[9].unix_s + 1.0, some, ROOM), 0);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, -INFINITY, some, 2), 10);
    check_close(some[1].unix_s, all[1].unix_s, 0.0);
    assert_int_equal(fly_meter_samples(fixture.meter, 0, -INFINITY, NULL, 0), 10);
    assert_int_equal(fly_meter_samples(fixture.meter, 1, -INFINITY, some, ROOM), 0);
    fixture_tear_down(&fixture);
}

static void test_refusals(void **state)
{
    struct meter_fixture fixture;
    struct fly_error error;

    (void)state;
    fixture_set_up(&fixture, &fixture_sensing, 1);
    fixture_open(&fixture, 0);
    assert_int_equal(fly_meter_keep(fixture.meter, 0, &error), FLY_EUSAGE);
    assert_string_equal(error.text, "0 samples cannot be kept; give 1 to 16777216");
    assert_int_equal(fly_meter_keep(fixture.meter, FLY_METER_SAMPLES_MAX + 1, NULL), FLY_EUSAGE);
    assert_int_equal(fly_meter_keep(fixture.meter, 1, NULL), 0);
    assert_int_equal(fly_meter_keep(fixture.meter, 1, &error), FLY_ESTATE);
    assert_string_equal(error.text, "the meter keeps samples already");
    fixture_tear_down(&fixture);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_since),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

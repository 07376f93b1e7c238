/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test against a device whose habits are known, in virtual time. */
#include "test.h"

#include "fake_device.h"
#include "meter/selftest/selftest.h"

/* What the device does, in nanoseconds and watts. */
static struct habits {
    int64_t counter_ns, power_ns, call_ns;
    double idle_w, ripple_w; /* the power swings by the ripple from one update to the next */
    double counter_gain;     /* of what the counter counts */
    bool denied;
} habits;

static struct fake_time virtual_time;
static struct clock virtual_clock;

static struct reading ok(double value)
{
    return (struct reading){.state = READING_OK, .value = (int64_t)value};
}

static void fake_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    int64_t power_update = virtual_time.now_ns / habits.power_ns;
    double power_w = habits.idle_w + (power_update % 2 != 0 ? habits.ripple_w : 0.0);
    int64_t counted_ns = virtual_time.now_ns - virtual_time.now_ns % habits.counter_ns;

    (void)device;
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if ((wanted & QUANTITY_BIT(i)) == 0)
            continue;
        virtual_time.now_ns += habits.call_ns;
        values[i] = (struct reading){.state = READING_UNSUPPORTED, .code = 3};
        if (i == QUANTITY_ENERGY)
            values[i] = ok((double)counted_ns / 1e9 * (habits.idle_w + habits.ripple_w / 2) *
                           habits.counter_gain * 1e6);
        else if (i == QUANTITY_POWER_INSTANT)
            values[i] = ok(power_w * 1e3);
        else if (i == QUANTITY_UTILIZATION)
            values[i] = ok(3);
        if (habits.denied)
            values[i] = (struct reading){.state = READING_DENIED, .code = 4};
    }
}

static const struct device_backend fake = {.name = "fake", .title = "a test's device", .read = fake_read};
static struct device_list devices;
static struct selftest_result result;

static int set_up(void **state)
{
    static const struct device_info info = {
        .kind = DEVICE_GPU, .uuid = "GPU-1", .minor = -1, .sensor = {0.02, 0.1, 0.1, false, 0.05, "a test"}};
    struct fly_error error;

    (void)state;
    habits = (struct habits){20000000, 100000000, 50000, 100, 10, 1, false};
    virtual_time.now_ns = 1000000000;
    virtual_clock = fake_clock(&virtual_time);
    memset(&devices, 0, sizeof devices);
    memset(&result, 0, sizeof result);
    return device_list_add(&devices, &fake, &info, NULL, &error);
}

static void measure(enum selftest_stage stage)
{
    const struct selftest_options options = {
        .devices = &devices, .clock = &virtual_clock, .duration_s = 10, .poll_s = 0.001};
    struct fly_error error = {0};

    assert_int_equal(selftest_measure(&options, stage, &result, &error), 0);
}

static const struct selftest_finding *finding_of(const char *check)
{
    static struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count = selftest_findings(&devices.devices[0].info, &result, findings);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(findings[i].check, check) == 0)
            return &findings[i];
    }
    print_error("there is no check '%s'\n", check);
    fail();
    return NULL;
}

static void check_finding(const char *check, enum selftest_outcome outcome, const char *text)
{
    const struct selftest_finding *finding = finding_of(check);

    if (finding->outcome != outcome)
        print_error("%s: %s\n", check, finding->text);
    assert_string_equal(selftest_outcome_word(finding->outcome), selftest_outcome_word(outcome));
    check_contains(finding->text, text);
}

static void test_latencies(void **state)
{
    (void)state;
    selftest_latencies(&devices.devices[0], &virtual_clock, &result);
    assert_int_equal(result.latencies[QUANTITY_ENERGY].reading.state, READING_OK);
    assert_int_equal(result.latencies[QUANTITY_ENERGY].seconds.count, SELFTEST_CALLS);
    check_close(result.latencies[QUANTITY_ENERGY].seconds.median, 50e-6, 1e-9);
    check_close(result.latencies[QUANTITY_ENERGY].seconds.p99, 50e-6, 1e-9);
    assert_int_equal(result.latencies[QUANTITY_MIG].reading.state, READING_UNSUPPORTED);
    assert_int_equal(result.latencies[QUANTITY_MIG].reading.code, 3);
    /* A call that takes half a second is made three times, not for minutes. */
    habits.call_ns = 500000000;
    selftest_latencies(&devices.devices[0], &virtual_clock, &result);
    assert_true(result.latencies[QUANTITY_ENERGY].seconds.count <= 3);
}

static void test_a_sound_device(void **state)
{
    const struct selftest_window *window = &result.windows[SELFTEST_IDLE];

    (void)state;
    measure(SELFTEST_IDLE);
    check_close(window->time_s, 10, 0.01);
    check_close(window->counter_j, 1050, 0.01);
    check_close(window->integral_j, 1050, 0.02);
    check_close(window->mean_power_w, 105, 0.01);
    check_close(window->utilization, 0.03, 1e-6);
    check_close(window->updates[0].period_s.median, 0.02, 0.1);
    check_close(window->updates[1].period_s.median, 0.1, 0.1);
    assert_int_equal(window->updates[2].polls, 0);
    assert_false(window->updates[0].at_most);
    habits.idle_w = 300;
    measure(SELFTEST_LOADED);
    check_finding("load_raises_power", SELFTEST_NOT_KNOWN, "no load was put on it; the power went from 10");
    result.load_ran = true;
    check_finding("counter_against_integral_idle", SELFTEST_AS_EXPECTED, "off the counter");
    check_finding("counter_against_integral_loaded", SELFTEST_AS_EXPECTED, "off the counter");
    check_finding("counter_period", SELFTEST_AS_EXPECTED, "the table says 20.0 ms");
    check_finding("power_period", SELFTEST_AS_EXPECTED, "the table says 100.0 ms");
    check_finding("idle_at_first", SELFTEST_AS_EXPECTED, "3 %");
    check_finding("load_raises_power", SELFTEST_AS_EXPECTED, "from 10");
}

static void test_a_device_that_differs(void **state)
{
    (void)state;
    habits.counter_ns = 100000000;
    habits.power_ns = 250000000;
    habits.counter_gain = 0.8;
    measure(SELFTEST_IDLE);
    measure(SELFTEST_LOADED);
    result.load_ran = true;
    check_finding("counter_against_integral_idle", SELFTEST_DIFFERS, "the integrated power is +2");
    check_finding("counter_period", SELFTEST_DIFFERS, "stated uncertainties are too small");
    check_finding("power_period", SELFTEST_DIFFERS, "stated uncertainties are too small");
    check_finding("load_raises_power", SELFTEST_DIFFERS, "to 84.");
}

static void test_unknown_is_not_zero(void **state)
{
    (void)state;
    habits.ripple_w = 0;
    measure(SELFTEST_IDLE);
    assert_int_equal(result.windows[SELFTEST_IDLE].updates[1].changes, 0);
    assert_true(isnan(result.windows[SELFTEST_IDLE].updates[1].period_s.median));
    check_finding("power_period", SELFTEST_NOT_KNOWN, "the power reading changed 0 times");
    check_finding("counter_against_integral_loaded", SELFTEST_NOT_KNOWN, "it was not measured");
    habits.denied = true;
    measure(SELFTEST_LOADED);
    assert_true(isnan(result.windows[SELFTEST_LOADED].counter_j));
    assert_true(isnan(result.windows[SELFTEST_LOADED].integral_excess));
    assert_true(isnan(result.windows[SELFTEST_LOADED].utilization));
    check_finding("counter_against_integral_loaded", SELFTEST_NOT_KNOWN, "no figure of an energy counter");
    check_finding("counter_period", SELFTEST_NOT_KNOWN, "changed 0 times in 0 polls");
    check_finding("load_raises_power", SELFTEST_NOT_KNOWN, "not known");
}

static void test_an_estimate_is_no_sensor(void **state)
{
    struct device_info info = devices.devices[0].info;
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];

    (void)state;
    measure(SELFTEST_IDLE);
    info.estimated = true;
    assert_int_equal(selftest_findings(&info, &result, findings), 1);
    assert_int_equal(findings[0].outcome, SELFTEST_NOT_KNOWN);
    check_contains(findings[0].text, "no sensor");
}

static bool stop_soon(void *data)
{
    (void)data;
    return virtual_time.now_ns < 3000000000;
}

static void test_interruption(void **state)
{
    const struct selftest_options options = {
        .devices = &devices, .clock = &virtual_clock, .duration_s = 10, .poll_s = 0.001, .go_on = stop_soon};
    struct fly_error error = {0};

    (void)state;
    assert_int_equal(selftest_measure(&options, SELFTEST_IDLE, &result, &error), FLY_ESTATE);
    assert_false(result.windows[SELFTEST_IDLE].measured);
    assert_true(virtual_time.now_ns < 3100000000);
}

static void test_spread(void **state)
{
    double values[] = {5, 1, 4, 2, 3};
    struct spread spread = spread_of(values, COUNT(values));

    (void)state;
    check_double(spread.lowest, 1);
    check_double(spread.median, 3);
    check_double(spread.p99, 5);
    check_double(spread.highest, 5);
    spread = spread_of(values, 0);
    assert_true(spread.count == 0 && isnan(spread.median) && isnan(spread.lowest) && isnan(spread.highest));
}

/* Polled every millisecond, whatever the period, the median is within a poll of the truth. */
static void test_update_periods(void **state)
{
    static const int periods_ms[] = {1, 2, 5, 20, 33, 100, 500};

    (void)state;
    for (size_t i = 0; i < COUNT(periods_ms); i++) {
        double periods_s[64];
        struct updates updates;
        struct update_finding finding;

        updates_init(&updates, periods_s, COUNT(periods_s));
        for (int t_ms = 0; t_ms < 5000; t_ms++)
            updates_add(&updates, (struct mono_time){t_ms * 1000000LL}, t_ms / periods_ms[i]);
        finding = updates_find(&updates);
        assert_true(fabs(finding.period_s.median * 1e3 - periods_ms[i]) <= 1.001);
        assert_true(finding.period_s.count <= COUNT(periods_s));
        assert_int_equal(finding.at_most, periods_ms[i] == 1);
        check_close(finding.poll_s, 1e-3, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_latencies, set_up),
        cmocka_unit_test_setup(test_a_sound_device, set_up),
        cmocka_unit_test_setup(test_a_device_that_differs, set_up),
        cmocka_unit_test_setup(test_unknown_is_not_zero, set_up),
        cmocka_unit_test_setup(test_an_estimate_is_no_sensor, set_up),
        cmocka_unit_test_setup(test_interruption, set_up),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_update_periods),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

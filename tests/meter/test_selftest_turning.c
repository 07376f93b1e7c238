/* SPDX-License-Identifier: Apache-2.0 */
/* Limits tried on a device whose habits are known, in virtual time, and what is said of them. */
#include "test.h"

#include <stdio.h>

#include "base/error.h"
#include "fake_device.h"
#include "meter/selftest/selftest.h"

static struct habits {
    double wanted_w; /* what the load draws without a limit */
    double lag_s;    /* from a set until the power follows */
    double over_w;   /* by which limits are missed */
    double floor_w;  /* below which no limit brings it */
    bool silent;     /* no power is told */
    bool works;      /* the load's work is known */
    int fails_at;    /* level at which setting fails; -1: none */
} habits;

static struct fake_time virtual_time;
static struct clock virtual_clock;
static int64_t counted_ns, set_ns;
static double limit_w, before_w, energy_j, work_done;

static double power_at(int64_t at_ns)
{
    double limit = (double)(at_ns - set_ns) >= habits.lag_s * 1e9 ? limit_w : before_w;

    return fmin(habits.wanted_w, fmax(limit + habits.over_w, habits.floor_w));
}

/* In steps of a millisecond: exact but for the one in which the power changes. */
static void count(void)
{
    for (; counted_ns + 1000000 <= virtual_time.now_ns; counted_ns += 1000000) {
        energy_j += power_at(counted_ns) * 1e-3;
        work_done += power_at(counted_ns) * 1e3;
    }
}

static void put(struct reading *values, quantity_set wanted, enum quantity quantity, double value)
{
    if ((wanted & QUANTITY_BIT(quantity)) != 0)
        values[quantity] = (struct reading){.state = READING_OK, .value = (int64_t)value};
}

static void fake_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    (void)device;
    virtual_time.now_ns += 50000;
    count();
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if ((wanted & QUANTITY_BIT(i)) != 0)
            values[i] = (struct reading){.state = READING_UNSUPPORTED, .code = 3};
    }
    put(values, wanted, QUANTITY_POWER_LIMIT, limit_w * 1e3);
    put(values, wanted, QUANTITY_CLOCK_GPU, 1410 * power_at(virtual_time.now_ns) / habits.wanted_w);
    if (habits.silent)
        return;
    put(values, wanted, QUANTITY_ENERGY, energy_j * 1e6);
    put(values, wanted, QUANTITY_POWER_INSTANT, power_at(virtual_time.now_ns) * 1e3);
}

static const struct device_backend fake = {.name = "fake", .title = "a test's device", .read = fake_read};
static struct device_list devices;
static struct selftest_result result;

static int set_up(void **state)
{
    static const struct device_info info = {.kind = DEVICE_GPU,
                                            .uuid = "GPU-1",
                                            .minor = -1,
                                            .sensor = {0.001, 0.001, 0.001, false, 0.05, "a test"}};
    struct fly_error error;

    (void)state;
    habits = (struct habits){.wanted_w = 330, .lag_s = 0.2, .works = true, .fails_at = -1};
    virtual_time.now_ns = counted_ns = 1000000000;
    virtual_clock = fake_clock(&virtual_time);
    energy_j = work_done = 0;
    limit_w = before_w = 400;
    memset(&devices, 0, sizeof devices);
    memset(&result, 0, sizeof result);
    result.turning = (struct selftest_turning){
        .wanted = true, .tried = true, .back_s = NAN, .before_w = 400, .after_w = 400};
    return device_list_add(&devices, &fake, &info, NULL, &error);
}

/* 400, 300, 200 and 100 W. */
static int set_level(void *data, int level, struct fly_error *out_error)
{
    (void)data;
    if (level == habits.fails_at)
        return error_set(out_error, FLY_EPERM, "no permission");
    before_w = limit_w;
    limit_w = 400 - 100.0 * level;
    set_ns = virtual_time.now_ns;
    return 0;
}

static bool work_of(void *data, size_t device, double *out_work)
{
    (void)data;
    (void)device;
    *out_work = work_done;
    return habits.works;
}

static bool until_4_s(void *data)
{
    (void)data;
    return virtual_time.now_ns < 4000000000;
}

static int turn(bool (*go_on)(void *data))
{
    const struct selftest_options options = {.devices = &devices,
                                             .clock = &virtual_clock,
                                             .settle_s = 1,
                                             .duration_s = 5,
                                             .poll_s = 0.001,
                                             .set = set_level,
                                             .work = work_of,
                                             .go_on = go_on};
    struct fly_error error = {0};

    return selftest_turn(&options, &result, &error);
}

static void check_finding(const char *check, enum selftest_outcome outcome, const char *text)
{
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count = selftest_findings(&devices.devices[0].info, &result, findings);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(findings[i].check, check) != 0)
            continue;
        if (findings[i].outcome != outcome)
            print_error("%s: %s\n", check, findings[i].text);
        assert_string_equal(selftest_outcome_word(findings[i].outcome), selftest_outcome_word(outcome));
        check_contains(findings[i].text, text);
        return;
    }
    print_error("there is no check '%s'\n", check);
    fail();
}

static void test_limits_that_hold(void **state)
{
    static const double limits_w[] = {400, 300, 200, 100}, powers_w[] = {330, 300, 200, 100};

    (void)state;
    assert_int_equal(turn(NULL), 0);
    for (int i = 0; i < SELFTEST_LEVELS; i++) {
        const struct selftest_level *level = &result.turning.levels[i];

        check_double(level->limit_w, limits_w[i]);
        check_close(level->mean_power_w, powers_w[i], 0.01);
        check_close(level->mean_reading_w, powers_w[i], 0.01);
        check_close(level->work_per_s, powers_w[i] * 1e6, 0.01);
        check_close(level->clock_mhz, 1410 * powers_w[i] / 330, 0.01);
        assert_true(level->uncertainty_w > 0 && level->uncertainty_w < 5);
        assert_true(level->settled_s >= 0 && level->settled_s < 0.21);
        assert_true(i == 0 || level->settled_s > 0.19);
    }
    check_finding("limits_bind", SELFTEST_AS_EXPECTED, "300 W: 300.");
    check_finding("limits_bind", SELFTEST_AS_EXPECTED, "; 100 W: 100.");
    check_finding("limits_slow_the_work", SELFTEST_AS_EXPECTED, "at 100 W the load does 30 % of the work");
    check_finding("limits_settle", SELFTEST_AS_EXPECTED, "under the limit 0.20");
    check_finding("limit_turned_back_at_end", SELFTEST_AS_EXPECTED, "400 W again");
}

static void test_limits_that_do_not(void **state)
{
    (void)state;
    habits.over_w = 12;
    assert_int_equal(turn(NULL), 0);
    check_finding("limits_bind", SELFTEST_DIFFERS, "above a limit by more than it is uncertain");
    check_finding("limits_settle", SELFTEST_DIFFERS, "did not stay below 309.0 W at a limit of 300 W");
    habits.over_w = 0;
    habits.floor_w = 150;
    assert_int_equal(turn(NULL), 0);
    check_finding("limits_bind", SELFTEST_DIFFERS, "100 W: 150.");
    check_finding("limits_settle", SELFTEST_DIFFERS, "did not stay below 105.0 W at a limit of 100 W");
    /* Not at all. */
    habits.floor_w = 330;
    assert_int_equal(turn(NULL), 0);
    check_finding("limits_bind", SELFTEST_DIFFERS, "300 W: 330.");
    check_finding("limits_slow_the_work", SELFTEST_DIFFERS, "does 100 % of the work");
}

static void test_slow_followers(void **state)
{
    (void)state;
    habits.lag_s = 3;
    assert_int_equal(turn(NULL), 0);
    check_finding("limits_settle", SELFTEST_AS_EXPECTED, "under the limit 3.0");
    check_finding("limits_bind", SELFTEST_DIFFERS, "above a limit");
    habits.lag_s = 7;
    limit_w = before_w = 400;
    assert_int_equal(turn(NULL), 0);
    check_finding("limits_settle", SELFTEST_DIFFERS, "did not stay below");
}

static void test_what_cannot_be_told(void **state)
{
    (void)state;
    habits.wanted_w = 80;
    assert_int_equal(turn(NULL), 0);
    check_finding("limits_bind", SELFTEST_NOT_KNOWN,
                  "the load's 80.0 W stayed below every limit, down to 100 W");
    check_finding("limits_slow_the_work", SELFTEST_NOT_KNOWN, "stayed below");
    check_finding("limits_settle", SELFTEST_NOT_KNOWN, "stayed below");
    habits.wanted_w = 330;
    habits.works = false;
    assert_int_equal(turn(NULL), 0);
    assert_true(isnan(result.turning.levels[0].work_per_s));
    check_finding("limits_slow_the_work", SELFTEST_NOT_KNOWN, "no load of this test's");
    habits.silent = true;
    assert_int_equal(turn(NULL), 0);
    assert_true(isnan(result.turning.levels[3].mean_power_w) && isnan(result.turning.levels[3].settled_s));
    check_finding("limits_bind", SELFTEST_NOT_KNOWN, "the power at the limits is not known");
    result.turning.after_w = NAN;
    check_finding("limit_turned_back_at_end", SELFTEST_NOT_KNOWN, "not known");
    result.turning.after_w = 100;
    check_finding("limit_turned_back_at_end", SELFTEST_DIFFERS, "is 100 W, and was 400 W before");
}

static void test_coming_back(void **state)
{
    struct selftest_turning *turning = &result.turning;

    (void)state;
    snprintf(turning->not_killed, sizeof turning->not_killed, "it did not start");
    check_finding("limit_comes_back_after_kill", SELFTEST_NOT_KNOWN, "held the limit down: it did not start");
    turning->killed = true;
    turning->killed_limit_w = 250;
    turning->back_max_s = 10;
    check_finding("limit_comes_back_after_kill", SELFTEST_DIFFERS, "10.0 s after a process was killed");
    turning->back_s = 0.02;
    check_finding("limit_comes_back_after_kill", SELFTEST_AS_EXPECTED,
                  "0.020 s after a process was killed that held the limit at 250 W it was back");
    turning->back_s = 1.5;
    check_finding("limit_comes_back_after_kill", SELFTEST_DIFFERS, "1.500 s after");
}

static void test_ends_early(void **state)
{
    (void)state;
    assert_int_equal(turn(until_4_s), FLY_ESTATE);
    assert_true(virtual_time.now_ns < 4100000000);
    habits.fails_at = 1;
    assert_int_equal(turn(NULL), FLY_EPERM);
    check_double(result.turning.levels[0].limit_w, 400);
    check_double(limit_w, 400);
}

/* One that is not to be turned, or was not asked for, is left alone and says so. */
static void test_not_turned(void **state)
{
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count;

    (void)state;
    result.turning.tried = false;
    snprintf(result.turning.why_not, sizeof result.turning.why_not, "somebody uses it");
    assert_int_equal(turn(NULL), 0);
    check_double(result.turning.levels[0].limit_w, 0);
    check_finding("limits_bind", SELFTEST_NOT_KNOWN, "was not turned: somebody uses it");
    count = selftest_findings(&devices.devices[0].info, &result, findings);
    result.turning.wanted = false;
    assert_int_equal(selftest_findings(&devices.devices[0].info, &result, findings), count - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_limits_that_hold, set_up),
        cmocka_unit_test_setup(test_limits_that_do_not, set_up),
        cmocka_unit_test_setup(test_slow_followers, set_up),
        cmocka_unit_test_setup(test_what_cannot_be_told, set_up),
        cmocka_unit_test_setup(test_coming_back, set_up),
        cmocka_unit_test_setup(test_ends_early, set_up),
        cmocka_unit_test_setup(test_not_turned, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

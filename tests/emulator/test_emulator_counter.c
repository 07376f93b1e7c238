/* SPDX-License-Identifier: Apache-2.0 */
/* When emulated energy counters are updated, what they show then, and the driver's time stamps. */
#include "emulator_support.h"

#include "emulator/counter_clock.h"

static const int64_t start_ns = INT64_C(1000000000000);

static const struct counter_clock exact = {.period_ns = 100000000,
                                           .phase_ns = INT64_C(1000037000000),
                                           .origin_ns = INT64_C(1000000000000),
                                           .seed = 3,
                                           .gpu = 1};

static int64_t ns(double s)
{
    return start_ns + (int64_t)llround(s * 1e9);
}

/* The mean period from the first to the last update of a stretch. */
static double mean_period_s(const struct counter_clock *clock, double from_s, double to_s, double nominal_s)
{
    int64_t first_ns = counter_clock_made_ns(clock, ns(from_s));
    int64_t last_ns = counter_clock_made_ns(clock, ns(to_s));

    return (double)(last_ns - first_ns) / 1e9 / round((double)(last_ns - first_ns) / 1e9 / nominal_s);
}

/* Whatever the clock does: an answer is at or before its moment, holds until the next, and never goes back.
 */
static void test_answers_agree(void **state)
{
    static const struct counter_clock clocks[] = {
        {.period_ns = 100000000, .drift_ppm = -80.0, .jitter_ns = 5000000},
        {.period_ns = 20000000, .drift_ppm = 100.0, .jitter_ns = 5000000, .skipped = 0.3},
        {.period_ns = 20000000, .slew_ppm = 1000.0, .slew_s = 7.0},
        {.period_ns = 1000000, .slew_ppm = 1000.0, .slew_s = 3600.0, .slew_steps = true},
        {.period_ns = 100000000, .jitter_ns = 500000000, .skipped = 0.9},
        {.period_ns = 100000000,
         .jitter_ns = 5000000,
         .sleeps = {.origin_ns = INT64_C(1000000000000), .every_ns = 1700000000, .each_ns = 3333000000}},
    };
    uint64_t random = 4;

    (void)state;
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct counter_clock clock = clocks[i];
        int64_t last_ns = INT64_MIN;
        double at_s = 0.0;

        clock.origin_ns = start_ns;
        clock.seed = (uint32_t)i;
        for (int asked = 0; asked < 20000; asked++) {
            int64_t made_ns = counter_clock_made_ns(&clock, ns(at_s));

            assert_true(made_ns <= ns(at_s));
            assert_true(made_ns >= last_ns);
            if (clock.sleeps.every_ns == 0)
                assert_true(counter_clock_made_ns(&clock, made_ns) == made_ns);
            if (made_ns > last_ns && last_ns != INT64_MIN && clock.sleeps.every_ns == 0)
                assert_true(counter_clock_made_ns(&clock, made_ns - 1) < made_ns);
            last_ns = made_ns;
            at_s += 0.011 * test_uniform(&random);
        }
    }
}

static void test_drift(void **state)
{
    struct counter_clock clock = exact;

    (void)state;
    assert_true(counter_clock_made_ns(&clock, ns(0.5)) == ns(0.437));
    assert_true(counter_clock_made_ns(&clock, ns(0.437) - 1) == ns(0.337));
    clock.drift_ppm = 100.0;
    check_close(mean_period_s(&clock, 0.0, 400.0, 0.1), 0.1 * 1.0001, 1e-9);
    clock.drift_ppm = -100.0;
    check_close(mean_period_s(&clock, 0.0, 400.0, 0.1), 0.1 * 0.9999, 1e-9);
    clock.period_ns = 0;
    assert_true(counter_clock_made_ns(&clock, 1234567) == 1234567);
}

static void test_slew(void **state)
{
    struct counter_clock clock = exact;

    (void)state;
    clock.slew_ppm = 500.0;
    clock.slew_s = 100.0;
    check_close(mean_period_s(&clock, 20.0, 30.0, 0.1), 0.1 * 1.0005, 2e-5);
    check_close(mean_period_s(&clock, 70.0, 80.0, 0.1), 0.1 * 0.9995, 2e-5);
    check_close(mean_period_s(&clock, 0.0, 1000.0, 0.1), 0.1, 1e-9);
    clock.slew_steps = true;
    check_close(mean_period_s(&clock, 1.0, 49.0, 0.1), 0.1 * 1.0005, 1e-9);
    check_close(mean_period_s(&clock, 51.0, 99.0, 0.1), 0.1 * 0.9995, 1e-9);
}

/* Updates are late by 0 to 5 ms, evenly, and 3 of 10 do not come. */
static void test_jitter_and_skips(void **state)
{
    struct counter_clock clock = exact;
    double late_s = 0.0, most_s = 0.0;
    unsigned came = 0;

    (void)state;
    clock.jitter_ns = 5000000;
    clock.skipped = 0.3;
    for (int i = 1; i <= 10000; i++) {
        double due_s = 0.037 + 0.1 * i;
        double made_s = (double)(counter_clock_made_ns(&clock, ns(due_s + 0.0999)) - start_ns) / 1e9;

        if (made_s < due_s)
            continue;
        came++;
        late_s += made_s - due_s;
        most_s = fmax(most_s, made_s - due_s);
    }
    assert_true(came > 6800 && came < 7200);
    assert_true(fabs(late_s / came - 0.0025) < 5e-5);
    assert_true(most_s > 0.0049 && most_s <= 0.005);
}

/* A sleep moves the phase, counts for dates and draws nothing. */
static void test_suspend(void **state)
{
    struct emulator *emulator =
        start("gpus=2,time=virtual,counter-drift-ppm=0,suspend-every-s=10,suspend-s=0.04", NULL);
    struct clock clock = emulator_clock(emulator);
    int64_t date_ns = clock.date(clock.state).ns;
    int64_t before_ns, after_ns;

    (void)state;
    emulator_advance_s(emulator, 9.0);
    before_ns = emulator_counter_made(emulator, 0).ns;
    assert_true(clock.date(clock.state).ns - date_ns == 9000000000);
    emulator_advance_s(emulator, 2.0);
    after_ns = emulator_counter_made(emulator, 0).ns;
    assert_true(clock.date(clock.state).ns - date_ns == 11040000000);
    assert_true((after_ns - before_ns + 40000000) % 100000000 == 0);
    emulator_suspend(emulator, 3600.0);
    assert_true(clock.date(clock.state).ns - date_ns == 3611040000000);
    assert_true(emulator_counter_made(emulator, 0).ns >= after_ns);
    check_double(emulator_truth_energy_j(emulator, 0, emulator_now(emulator)), 11.0 * 60.0);
    for (int i = 0; i < 1000; i++) {
        unsigned long long counter_mj = emulator_counter_mj(emulator, 1);

        if (i % 100 == 0)
            emulator_suspend(emulator, 0.031);
        emulator_advance_s(emulator, 0.007);
        assert_true(emulator_counter_mj(emulator, 1) >= counter_mj);
        assert_true(emulator_now(emulator).ns - emulator_counter_made(emulator, 1).ns < 200000000);
    }
    stop(emulator);
}

/* Clocks differ from GPU to GPU and seed to seed, within the setting; they are the same in each run. */
static void test_seeds(void **state)
{
    double drifts[2][16];

    (void)state;
    for (int run = 0; run < 2; run++) {
        struct emulator *emulator = start("gpus=16,time=virtual,seed=5,counter-drift-ppm=50", NULL);
        double most = 0.0;

        for (unsigned gpu = 0; gpu < 16; gpu++) {
            drifts[run][gpu] = emulator_sensor_of(emulator, gpu).counter.drift_ppm;
            most = fmax(most, fabs(drifts[run][gpu]));
            assert_true(gpu == 0 || drifts[run][gpu] != drifts[run][gpu - 1]);
        }
        assert_true(most > 25.0 && most <= 50.0);
        stop(emulator);
    }
    assert_memory_equal(drifts[0], drifts[1], sizeof drifts[0]);
}

static void test_steps(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,counter-period-ms=0,counter-step-mj=1000", NULL);

    (void)state;
    for (int i = 0; i < 100; i++) {
        double truth_mj;

        emulator_advance_s(emulator, 0.0123);
        truth_mj = 1e6 + 1e3 * emulator_truth_energy_j(emulator, 0, emulator_now(emulator));
        assert_true(emulator_counter_mj(emulator, 0) % 1000 == 0);
        assert_true(truth_mj - (double)emulator_counter_mj(emulator, 0) < 1000.5);
        assert_true(truth_mj - (double)emulator_counter_mj(emulator, 0) > -0.5);
    }
    stop(emulator);
}

static unsigned long long read_mj(void)
{
    unsigned long long energy_mj = 0;

    assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &energy_mj), NVML_SUCCESS);
    return energy_mj;
}

/* The first reading after a period is fresh; until another has passed, all say the same. */
static void test_on_read(void **state)
{
    static const char *const counters[] = {"truth", "power"};

    (void)state;
    for (size_t i = 0; i < COUNT(counters); i++) {
        char settings[128];
        struct emulator *emulator;
        unsigned long long first_mj;

        snprintf(settings, sizeof settings, "gpus=1,model=v100,time=virtual,counter-update=read,counter=%s",
                 counters[i]);
        emulator = start(settings, NULL);
        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        first_mj = read_mj();
        emulator_set_load(emulator, 0, 200.0);
        emulator_advance_s(emulator, 100.0);
        assert_true(fabs((double)(read_mj() - first_mj) -
                         1e3 * emulator_truth_energy_j(emulator, 0, emulator_now(emulator))) <
                    (i == 0 ? 2.0 : 5000.0));
        assert_true(emulator_counter_made(emulator, 0).ns == emulator_now(emulator).ns);
        first_mj = read_mj();
        emulator_advance_s(emulator, 0.0199);
        assert_true(read_mj() == first_mj);
        emulator_advance_s(emulator, 0.0002);
        assert_true(read_mj() > first_mj);
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
}

/* Without a counter a driver has no energy by either way, and its power all the same. */
static void test_no_counter(void **state)
{
    struct emulator *emulator = start("gpus=1,time=virtual,counter=none", NULL);
    struct nvml_field_value fields[] = {{.field_id = NVML_FIELD_TOTAL_ENERGY},
                                        {.field_id = NVML_FIELD_POWER_INSTANT}};
    unsigned long long energy_mj = 4711;

    (void)state;
    assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetTotalEnergyConsumption(device(0), &energy_mj), NVML_NOT_SUPPORTED);
    assert_int_equal(energy_mj, 4711);
    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device(0), 2, fields), NVML_SUCCESS);
    assert_int_equal(fields[0].code, NVML_NOT_SUPPORTED);
    assert_int_equal(fields[1].code, NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    stop(emulator);
}

/* The date of the emulator's clock, in us. */
static long long date_us(struct emulator *emulator, int64_t at_ns)
{
    struct clock clock = emulator_clock(emulator);

    return (clock.date(clock.state).ns + at_ns - emulator_now(emulator).ns) / 1000;
}

static void test_stamps(void **state)
{
    static const char *const words[] = {"read", "made", "late"};

    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        struct nvml_field_value fields[] = {{.field_id = NVML_FIELD_TOTAL_ENERGY},
                                            {.field_id = NVML_FIELD_POWER_INSTANT},
                                            {.field_id = NVML_FIELD_POWER_LIMIT_MAX}};
        char settings[128];
        struct emulator *emulator;
        struct emulator_sensor sensor;
        int64_t now_ns, power_ns;

        snprintf(settings, sizeof settings, "gpus=1,time=virtual,counter-jitter-ms=5,stamps=%s", words[i]);
        emulator = start(settings, NULL);
        sensor = emulator_sensor_of(emulator, 0);
        assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
        for (int round = 0; round < 50; round++) {
            emulator_advance_s(emulator, 0.0437);
            now_ns = emulator_now(emulator).ns;
            power_ns = now_ns - (now_ns - sensor.power_phase_ns) % sensor.power_period_ns;
            assert_int_equal(nvml.nvmlDeviceGetFieldValues(device(0), 3, fields), NVML_SUCCESS);
            assert_int_equal(fields[2].timestamp_us, date_us(emulator, now_ns));
            if (i == 0) {
                assert_int_equal(fields[0].timestamp_us, date_us(emulator, now_ns));
                assert_int_equal(fields[1].timestamp_us, date_us(emulator, now_ns));
                continue;
            }
            assert_true(sensor.stamps_late_ns > 0 && sensor.stamps_late_ns < 50000000);
            assert_int_equal(fields[0].timestamp_us,
                             date_us(emulator, emulator_counter_made(emulator, 0).ns +
                                                   (i == 2 ? sensor.stamps_late_ns : 0)));
            assert_int_equal(fields[1].timestamp_us,
                             date_us(emulator, power_ns + (i == 2 ? sensor.stamps_late_ns : 0)));
        }
        assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
        stop(emulator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_agree), cmocka_unit_test(test_drift),
        cmocka_unit_test(test_slew),          cmocka_unit_test(test_jitter_and_skips),
        cmocka_unit_test(test_suspend),       cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_on_read),
        cmocka_unit_test(test_no_counter),    cmocka_unit_test(test_stamps),
    };
    int status = emulator_support_begin();

    return status != 0 ? status : cmocka_run_group_tests(tests, NULL, NULL);
}

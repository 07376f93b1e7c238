/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meter against emulated GPUs, through the driver library as programs load
 * it: every GPU has a load of its own, windows of random length and phase
 * overlap, and the stated interval has to hold the emulator's truth in 95 % of
 * them. FLYBALL_TEST_QUICK=1 asks for fewer windows, FLYBALL_TEST_LOADS=N for
 * N sets of loads drawn at random.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "emulated_machine.h"
#include "meter_fixture.h"

enum { SEEDS = 3, WINDOWS = 1000, QUICK_WINDOWS = 150, REAL_WINDOWS = 50 };

static const struct {
    const char *title, *settings;
    unsigned sensor;
    bool counter;
    enum { SHOWN, COVERED, SHARP } held_to; /* SHARP: covered, and the width held against the error */
    double sample_hz;
} kinds[] = {
    {"counter, of a sensor that sees 25 of 100 ms", "model=a100,sensor=part-time,counter=power",
     MADE_PART_TIME, true, SHARP, 0.0},
    {"counter, of a sensor that averages over a second", "model=a40,sensor=second", 0, true, SHARP, 0.0},
    {"integrated, of a sensor that sees 25 of 100 ms", "model=a100,sensor=part-time", MADE_PART_TIME, false,
     SHARP, 0.0},
    {"integrated, of a sensor that averages over a second", "model=a40,sensor=second", MADE_SECOND, false,
     SHARP, 0.0},
    /* No software can tell that this counter sees more than the readings do, so the interval is wide. */
    {"counter that sees all, beside a sensor that sees 25 of 100 ms", "model=a100,sensor=part-time", 0, true,
     COVERED, 0.0},
    {"integrated at 50 Hz, of a sensor that sees 25 of 100 ms", "model=a100,sensor=part-time", MADE_PART_TIME,
     false, COVERED, 50.0},
    {"integrated at 2 Hz, of a sensor that averages over a second", "model=a40,sensor=second", MADE_SECOND,
     false, COVERED, 2.0},
    {"counter that sums averages over a second, which none is known to do",
     "model=a40,sensor=second,counter=power", MADE_PART_TIME | MADE_SECOND, true, SHOWN, 0.0},
    {"counter, of a sensor that sees 10 of 20 ms, with noise", "model=v100,counter=power,noise-w=2",
     MADE_PART_TIME, true, COVERED, 0.0},
};

/* 95 % of all that the sensor can show, and of every load nearly so: its windows overlap and are no thousand
 * trials. */
static void check_covered(const struct coverage *coverage, double least_of_one)
{
    struct coverage_finding all = coverage_find(coverage, -1, -1);

    if (!(all.covered >= 0.95))
        fail_msg("%.1f %% of %zu intervals hold the truth", 100.0 * all.covered, all.figures);
    for (unsigned load = 0; load < MADE_LOADS; load++) {
        struct coverage_finding one = coverage_find(coverage, (int)load, -1);

        if (one.figures > 0 && !(made_loads[load].hidden_from & coverage->sensor) &&
            !(one.covered >= least_of_one))
            fail_msg("%s: %.1f %% of %zu intervals hold the truth", made_loads[load].name,
                     100.0 * one.covered, one.figures);
    }
}

/* What sampled power says against a counter is worth reading: it is silent about loads that no sensor hides.
 */
static void check_disputed(struct coverage coverage, bool sees_all)
{
    struct coverage_finding all;

    coverage.sensor = MADE_PART_TIME | MADE_SECOND;
    all = coverage_find(&coverage, -1, -1);
    assert_true(all.disputed <= all.windows / 100);
    for (unsigned load = 0; load < MADE_LOADS && sees_all; load++) {
        struct coverage_finding one = coverage_find(&coverage, (int)load, -1);

        /* And gives away a beat, where the counter sees what the sensor does not. */
        if (strcmp(made_loads[load].name, "square, 100 ms exactly") == 0)
            assert_true(one.disputed > one.windows / 3);
    }
}

static void check_sharp(const struct coverage *coverage)
{
    for (int decade = 0; decade < COVERAGE_DECADES; decade++) {
        struct coverage_finding finding = coverage_find(coverage, -1, decade);

        if (finding.figures >= 100 && !(finding.half_j <= 3.5 * finding.error_j))
            fail_msg("decade %d: half width of %g J for errors of %g J", decade, finding.half_j,
                     finding.error_j);
    }
}

static bool is_quick(void)
{
    const char *quick = getenv("FLYBALL_TEST_QUICK");

    return quick != NULL && strcmp(quick, "1") == 0;
}

/* How many sets of loads to draw that were never seen before: FLYBALL_TEST_LOADS. */
static uint64_t drawn_sets(void)
{
    const char *text = getenv("FLYBALL_TEST_LOADS");

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* Held to the whole alone: among loads at random there are some that beat with the sensor. */
static void test_drawn(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        static struct machine machine;
        struct coverage coverage = {.sensor = 0};
        char settings[128];

        snprintf(settings, sizeof settings, "time=virtual,%s", kinds[kind].settings);
        for (uint64_t seed = 1; kinds[kind].held_to == SHARP && seed <= drawn_sets(); seed++) {
            made_loads_draw(seed);
            machine_start(&machine, settings, kinds[kind].counter, kinds[kind].sample_hz, seed, NULL);
            machine_measure(&machine, &coverage, WINDOWS);
            machine_stop(&machine);
        }
        if (coverage.count > 0) {
            coverage_print(&coverage, kinds[kind].title);
            check_covered(&coverage, 0.0);
            check_sharp(&coverage);
        }
        coverage_deinit(&coverage);
    }
}

static void test_virtual(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        static struct machine machine;
        struct coverage coverage = {.sensor = kinds[kind].sensor};
        char settings[128];

        snprintf(settings, sizeof settings, "time=virtual,%s", kinds[kind].settings);
        for (uint64_t seed = 1; seed <= (is_quick() || kinds[kind].sample_hz > 0.0 ? 1 : SEEDS); seed++) {
            machine_start(&machine, settings, kinds[kind].counter, kinds[kind].sample_hz, seed, NULL);
            machine_measure(&machine, &coverage, is_quick() ? QUICK_WINDOWS : WINDOWS);
            machine_stop(&machine);
        }
        coverage_print(&coverage, kinds[kind].title);
        if (kinds[kind].held_to >= COVERED)
            check_covered(&coverage, is_quick() || kinds[kind].sample_hz > 0.0 ? 0.9 : 0.95);
        if (kinds[kind].held_to >= COVERED)
            check_disputed(coverage, strncmp(kinds[kind].title, "counter that sees all", 21) == 0);
        if (kinds[kind].held_to >= SHARP)
            check_sharp(&coverage);
        coverage_deinit(&coverage);
    }
}

static void test_real(void **state)
{
    static struct machine machine;
    struct coverage coverage = {.sensor = MADE_PART_TIME};

    (void)state;
    for (int counter = 0; counter < 2; counter++) {
        machine_start(&machine, "time=real,model=a100,sensor=part-time,counter=power", counter, 0.0, 7, NULL);
        machine.clock.sleep_until(machine.clock.state,
                                  mono_after_s(machine.clock.now(machine.clock.state), 0.5));
        machine_measure_real(&machine, &coverage, REAL_WINDOWS);
        assert_true(meter_own_cpu_s(machine.meter) > 0.0);
        machine_stop(&machine);
    }
    coverage_print(&coverage, "in real time");
    check_covered(&coverage, 0.5);
    coverage_deinit(&coverage);
}

/* Sensors of made-up devices, by coverage's kinds. */
static const struct fake_device fake_sensors[] = {
    {.counter_period_s = 0.1, .counter_from_power = true, .power_period_s = 0.1, .power_window_s = 0.025},
    {.counter_period_s = 0.02, .power_period_s = 0.1, .power_window_s = 1.0},
    {.power_period_s = 0.1, .power_window_s = 0.025},
    {.power_period_s = 0.1, .power_window_s = 1.0},
    {.counter_period_s = 0.001}, /* as RAPL: a counter and nothing else */
};

static void set_up_sensor(struct meter_fixture *fixture, const struct fake_device *sensor, uint64_t *random)
{
    fixture_set_up(fixture, sensor, 1);
    fixture->fakes[0].counter_phase_s = test_uniform(random) * sensor->counter_period_s;
    fixture->fakes[0].power_phase_s = test_uniform(random) * sensor->power_period_s;
    fixture->load.count = 0;
    fixture->load.end_s = 0.0;
}

/* Windows that begin with work and end with it, as those around a training step do; often, and rarely. */
static void test_aligned(void **state)
{
    enum { PIECES = 300 };
    static struct meter_fixture fixture;
    uint64_t random = 9;

    (void)state;
    for (size_t trial = 0; trial < 2 * COUNT(fake_sensors); trial++) {
        size_t sensor = trial / 2;
        double idle_s = trial % 2 == 0 ? 5.0 : 100.0;
        struct coverage coverage = {0};
        double begins_s[PIECES], ends_s[PIECES];

        set_up_sensor(&fixture, &fake_sensors[sensor], &random);
        fake_load_add(&fixture.load, 15.0, 70.0);
        for (int i = 0; i < PIECES; i++) {
            begins_s[i] = fixture.load.end_s;
            fake_load_add(&fixture.load, 0.1 * exp(test_uniform(&random) * log(100.0)), 320.0);
            ends_s[i] = fixture.load.end_s;
            fake_load_add(&fixture.load, 0.5 + idle_s * test_uniform(&random), 70.0);
        }
        fixture_open(&fixture, 1);
        for (int i = 0; i < PIECES; i++) {
            struct fly_device_energy energy;

            fixture_pass(&fixture, begins_s[i] - fake_now_s(&fixture.fakes[0]));
            energy = fixture_measure(&fixture, ends_s[i] - begins_s[i]);
            coverage_add(&coverage, 0, 320.0 * (ends_s[i] - begins_s[i]), &energy);
        }
        coverage_print(&coverage, "of windows that begin and end with work (the load's name is none of it)");
        check_covered(&coverage, 0.0);
        coverage_deinit(&coverage);
        fixture_tear_down(&fixture);
    }
}

/* Windows that begin with the first second of a meter, which knows nothing of the load yet. */
static void test_fresh(void **state)
{
    static struct meter_fixture fixture;
    uint64_t random = 5;

    (void)state;
    for (size_t sensor = 0; sensor < COUNT(fake_sensors); sensor++) {
        struct coverage coverage = {.sensor = fake_sensors[sensor].power_window_s < 1.0 ? MADE_PART_TIME
                                                                                        : MADE_SECOND};

        for (unsigned trial = 0; trial < 150 * MADE_LOADS; trial++) {
            unsigned load = trial % MADE_LOADS;
            struct made_sequence sequence = made_sequence(&made_loads[load], trial);
            struct fly_device_energy energy;
            double begin_s;

            set_up_sensor(&fixture, &fake_sensors[sensor], &random);
            while (fixture.load.end_s < 20.0) {
                double duration_s, power_w;

                made_sequence_next(&sequence, &duration_s, &power_w);
                fake_load_add(&fixture.load, duration_s, power_w);
            }
            fixture_open(&fixture, 1);
            fixture_pass(&fixture, test_uniform(&random));
            begin_s = fake_now_s(&fixture.fakes[0]);
            energy = fixture_measure(&fixture, 0.05 * exp(test_uniform(&random) * log(100.0)));
            coverage_add(&coverage, load,
                         fake_load_energy_j(&fixture.load, fake_now_s(&fixture.fakes[0])) -
                             fake_load_energy_j(&fixture.load, begin_s),
                         &energy);
            fixture_tear_down(&fixture);
        }
        coverage_print(&coverage, "of a meter that was just opened");
        check_covered(&coverage, 0.85);
        coverage_deinit(&coverage);
    }
}

int main(void)
{
    const struct CMUnitTest drawn[] = {cmocka_unit_test(test_drawn)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_real),
    };

    return drawn_sets() > 0 ? cmocka_run_group_tests(drawn, NULL, NULL)
                            : cmocka_run_group_tests(tests, NULL, NULL);
}

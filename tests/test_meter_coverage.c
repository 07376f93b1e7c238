/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meter against emulated GPUs, through the driver library as programs load
 * it: every GPU has a load of its own, windows of random length and phase
 * overlap, and the stated interval has to hold the emulator's truth in 95 % of
 * them. FLYBALL_TEST_QUICK=1 asks for fewer windows.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "coverage.h"
#include "device/backends.h"
#include "emulator/control.h"
#include "made_loads.h"
#include "meter_fixture.h"

enum { GPUS = 16, SEEDS = 3, OPEN_MAX = 48, WINDOWS = 1000, QUICK_WINDOWS = 150, REAL_WINDOWS = 50 };

/* Drivers have two ways to the counter. */
static const char no_counter[] = "call nvmlDeviceGetTotalEnergyConsumption return NOT_SUPPORTED\n"
                                 "call nvmlDeviceGetFieldValues return NOT_SUPPORTED\n";

/* An emulated machine of which every GPU runs another load. */
struct machine {
    struct emulator *emulator;
    struct clock clock;
    struct device_list list;
    struct fly_meter *meter;
    char path[64];
    unsigned gpus;
    struct made_sequence loads[GPUS];
    double planned_s[GPUS]; /* until when loads are planned */
    uint64_t random;
};

struct open_window {
    fly_window window; /* 0: none */
    double end_s;
    double truth_j[GPUS];
};

static double now_s(const struct machine *machine)
{
    return (double)machine->clock.now(machine->clock.state).ns * 1e-9;
}

static struct mono_time moment(double t_s)
{
    return (struct mono_time){(int64_t)(t_s * 1e9)};
}

/* Plans what the GPUs do for some seconds from now on. */
static void plan(struct machine *machine, double ahead_s)
{
    double until_s = now_s(machine) + ahead_s;

    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        while (machine->planned_s[gpu] < until_s) {
            double duration_s, power_w;

            made_sequence_next(&machine->loads[gpu], &duration_s, &power_w);
            assert_int_equal(
                emulator_plan_load(machine->emulator, gpu, moment(machine->planned_s[gpu]), power_w, NULL),
                0);
            machine->planned_s[gpu] += duration_s;
        }
    }
}

static void open_devices(struct machine *machine)
{
    static char library[512];
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");
    struct device_options options = {.nvml_path = library, .clock = &machine->clock};
    struct fly_error error;

    snprintf(library, sizeof library, "%s/libnvidia-ml.so.1",
             directory != NULL ? directory : "build/emulator");
    if (device_backend_nvml.open(&options, &machine->list, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(machine->list.count, machine->gpus);
}

static void start(struct machine *machine, const char *settings_text, bool counter, double sample_hz,
                  uint64_t seed)
{
    struct emulator_settings settings = emulator_default_settings;
    struct fault_list faults = {0};
    struct meter_parts parts = {.devices = &machine->list, .clock = &machine->clock, .sample_hz = sample_hz};
    char text[256];
    struct fly_error error;

    memset(machine, 0, sizeof *machine);
    machine->random = seed;
    machine->gpus = made_load_count;
    snprintf(machine->path, sizeof machine->path, "/tmp/flyball-test-coverage-%d", (int)getpid());
    unlink(machine->path);
    setenv("FLYBALL_EMULATOR_STATE", machine->path, 1);
    snprintf(text, sizeof text, "gpus=%u,seed=%u,%s", machine->gpus, (unsigned)seed, settings_text);
    if (emulator_settings_parse(&settings, text, &error) < 0 ||
        emulator_create(machine->path, &settings, &machine->emulator, &error) < 0)
        fail_msg("%s", error.text);
    if (!counter && faults_parse(no_counter, "test", &faults, &error) < 0)
        fail_msg("%s", error.text);
    emulator_set_faults(machine->emulator, &faults);
    machine->clock = emulator_clock(machine->emulator);
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        machine->loads[gpu] = made_sequence(&made_loads[gpu], seed * 100 + gpu);
        machine->planned_s[gpu] = now_s(machine);
    }
    plan(machine, 5.0);
    open_devices(machine);
    parts.threadless = settings.virtual_time;
    assert_int_equal(meter_new(&parts, &machine->meter, NULL), 0);
}

static void stop(struct machine *machine)
{
    fly_meter_close(machine->meter);
    device_list_close(&machine->list);
    emulator_close(machine->emulator);
    emulator_remove(machine->path, NULL);
}

static double uniform(struct machine *machine)
{
    return test_uniform(&machine->random);
}

static void begin_window(struct machine *machine, struct open_window *open, double length_s)
{
    struct mono_time now = machine->clock.now(machine->clock.state);

    assert_int_equal(fly_meter_begin(machine->meter, "window", &open->window, NULL), 0);
    open->end_s = (double)now.ns * 1e-9 + length_s;
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++)
        open->truth_j[gpu] = -emulator_truth_energy_j(machine->emulator, gpu, now);
}

static void end_window(struct machine *machine, struct open_window *open, struct coverage *coverage)
{
    struct fly_device_energy energies[GPUS];
    struct fly_measurement measured = {.size = sizeof measured, .devices = energies, .device_capacity = GPUS};
    struct mono_time now = machine->clock.now(machine->clock.state);

    assert_int_equal(fly_meter_end(machine->meter, open->window, &measured, NULL), 0);
    open->window = 0;
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        double truth_j = open->truth_j[gpu] + emulator_truth_energy_j(machine->emulator, gpu, now);

        assert_true(energies[gpu].source != FLY_ENERGY_UNAVAILABLE || energies[gpu].note[0] != '\0');
        assert_true(energies[gpu].energy_j != 0.0);
        coverage_add(coverage, gpu, truth_j, &energies[gpu]);
    }
}

/* Moves time on to `when_s`, sampling whenever that is due. */
static void move_to(struct machine *machine, double when_s)
{
    struct mono_time when = moment(when_s);

    for (;;) {
        struct mono_time next = meter_next_sample(machine->meter);

        if (next.ns > when.ns)
            break;
        machine->clock.sleep_until(machine->clock.state, next);
        meter_sample(machine->meter);
        plan(machine, 5.0);
    }
    machine->clock.sleep_until(machine->clock.state, when);
}

/* The open window that ends first; NULL without any. */
static struct open_window *first_to_end(struct open_window *open, size_t count)
{
    struct open_window *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (open[i].window != 0 && (first == NULL || open[i].end_s < first->end_s))
            first = &open[i];
    }
    return first;
}

static struct open_window *free_place(struct open_window *open, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (open[i].window == 0)
            return &open[i];
    }
    return NULL;
}

/* Windows of 50 ms to 60 s, as many short as long ones, that begin at random. */
static void measure(struct machine *machine, struct coverage *coverage, int windows)
{
    static struct open_window open[OPEN_MAX];
    double next_s = now_s(machine) + 10.0;
    int begun = 0;

    for (;;) {
        struct open_window *ending = first_to_end(open, OPEN_MAX), *place = free_place(open, OPEN_MAX);

        if (begun < windows && place != NULL && (ending == NULL || next_s < ending->end_s)) {
            move_to(machine, fmax(next_s, now_s(machine)));
            begin_window(machine, place, 0.05 * exp(uniform(machine) * log(1200.0)));
            next_s = now_s(machine) + 0.8 * uniform(machine);
            begun++;
        } else if (ending != NULL) {
            move_to(machine, ending->end_s);
            end_window(machine, ending, coverage);
        } else {
            break;
        }
    }
}

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
    for (unsigned load = 0; load < made_load_count; load++) {
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
    for (unsigned load = 0; load < made_load_count && sees_all; load++) {
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

        if (finding.figures >= 100 && !(finding.half_j <= 3.0 * finding.error_j))
            fail_msg("decade %d: half width of %g J for errors of %g J", decade, finding.half_j,
                     finding.error_j);
    }
}

static bool is_quick(void)
{
    const char *quick = getenv("FLYBALL_TEST_QUICK");

    return quick != NULL && strcmp(quick, "1") == 0;
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
            start(&machine, settings, kinds[kind].counter, kinds[kind].sample_hz, seed);
            measure(&machine, &coverage, is_quick() ? QUICK_WINDOWS : WINDOWS);
            stop(&machine);
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

/* Windows one after the other and within each other, while the meter's own thread samples. */
static void measure_real(struct machine *machine, struct coverage *coverage)
{
    struct open_window open[8] = {{0}};

    for (int begun = 0; begun < REAL_WINDOWS || first_to_end(open, COUNT(open)) != NULL;) {
        struct open_window *ending = first_to_end(open, COUNT(open)), *place = free_place(open, COUNT(open));

        plan(machine, 3.0);
        if (begun < REAL_WINDOWS && place != NULL) {
            begin_window(machine, place, 0.05 * exp(uniform(machine) * log(8.0)));
            begun++;
            clock_real.sleep_until(NULL, moment(now_s(machine) + 0.04 * uniform(machine)));
        } else {
            clock_real.sleep_until(NULL, moment(ending->end_s));
            end_window(machine, ending, coverage);
        }
    }
}

static void test_real(void **state)
{
    static struct machine machine;
    struct coverage coverage = {.sensor = MADE_PART_TIME};

    (void)state;
    for (int counter = 0; counter < 2; counter++) {
        start(&machine, "time=real,model=a100,sensor=part-time,counter=power", counter, 0.0, 7);
        clock_real.sleep_until(NULL, moment(now_s(&machine) + 0.5));
        measure_real(&machine, &coverage);
        assert_true(meter_own_cpu_s(machine.meter) > 0.0);
        stop(&machine);
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

        for (unsigned trial = 0; trial < 150 * made_load_count; trial++) {
            unsigned load = trial % made_load_count;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_real),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "emulated_machine.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/backend.h"

enum { OPEN_MAX = 48 };

/* Drivers have two ways to the counter. */
static const char no_counter[] = "call nvmlDeviceGetTotalEnergyConsumption return NOT_SUPPORTED\n"
                                 "call nvmlDeviceGetFieldValues return NOT_SUPPORTED\n";

struct open_window {
    fly_window window; /* 0: none */
    double end_s;
    double truth_j[MADE_LOADS];
};

double machine_now_s(const struct machine *machine)
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
    double until_s = machine_now_s(machine) + ahead_s;

    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        while (machine->planned_s[gpu] < until_s) {
            double duration_s, power_w;

            machine->loads[gpu].next(machine->loads[gpu].state, &duration_s, &power_w);
            assert_int_equal(
                emulator_plan_load(machine->emulator, gpu, moment(machine->planned_s[gpu]), power_w, NULL),
                0);
            machine->planned_s[gpu] += duration_s;
        }
    }
}

static void next_of_made(void *sequence, double *out_duration_s, double *out_power_w)
{
    made_sequence_next(sequence, out_duration_s, out_power_w);
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

void machine_start(struct machine *machine, const char *settings_text, bool counter, double sample_hz,
                   uint64_t seed, const struct machine_load *loads)
{
    struct emulator_settings settings = emulator_default_settings;
    struct fault_list faults = {0};
    struct meter_parts parts = {.devices = &machine->list, .clock = &machine->clock, .sample_hz = sample_hz};
    char text[512];
    struct fly_error error;

    memset(machine, 0, sizeof *machine);
    machine->random = seed;
    machine->gpus = MADE_LOADS;
    snprintf(machine->path, sizeof machine->path, "/tmp/flyball-test-coverage-%d", (int)getpid());
    unlink(machine->path);
    setenv("FLYBALL_EMULATOR_STATE", machine->path, 1);
    settings.ideal = true;
    snprintf(text, sizeof text, "gpus=%u,seed=%u,%s", machine->gpus, (unsigned)seed, settings_text);
    if (emulator_settings_parse(&settings, text, &error) < 0 ||
        emulator_create(machine->path, &settings, &machine->emulator, &error) < 0)
        fail_msg("%s", error.text);
    if (!counter && faults_parse(no_counter, "test", &faults, &error) < 0)
        fail_msg("%s", error.text);
    emulator_set_faults(machine->emulator, &faults);
    machine->clock = emulator_clock(machine->emulator);
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        machine->made[gpu] = made_sequence(&made_loads[gpu], seed * 100 + gpu);
        machine->loads[gpu] =
            loads != NULL ? loads[gpu] : (struct machine_load){next_of_made, &machine->made[gpu]};
        machine->planned_s[gpu] = machine_now_s(machine);
    }
    plan(machine, 5.0);
    open_devices(machine);
    parts.threadless = settings.virtual_time;
    assert_int_equal(meter_new(&parts, &machine->meter, NULL), 0);
}

void machine_stop(struct machine *machine)
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
    struct fly_device_energy energies[MADE_LOADS];
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = energies, .device_capacity = MADE_LOADS};
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

void machine_move_to(struct machine *machine, double when_s)
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
void machine_measure(struct machine *machine, struct coverage *coverage, int windows)
{
    static struct open_window open[OPEN_MAX];
    double next_s = machine_now_s(machine) + 10.0;
    int begun = 0;

    for (;;) {
        struct open_window *ending = first_to_end(open, OPEN_MAX), *place = free_place(open, OPEN_MAX);

        if (begun < windows && place != NULL && (ending == NULL || next_s < ending->end_s)) {
            machine_move_to(machine, fmax(next_s, machine_now_s(machine)));
            begin_window(machine, place, 0.05 * exp(uniform(machine) * log(1200.0)));
            next_s = machine_now_s(machine) + 0.8 * uniform(machine);
            begun++;
        } else if (ending != NULL) {
            machine_move_to(machine, ending->end_s);
            end_window(machine, ending, coverage);
        } else {
            break;
        }
    }
}

/* Windows one after the other and within each other, while the meter's own thread samples. */
void machine_measure_real(struct machine *machine, struct coverage *coverage, int windows)
{
    struct open_window open[8] = {{0}};

    for (int begun = 0; begun < windows || first_to_end(open, COUNT(open)) != NULL;) {
        struct open_window *ending = first_to_end(open, COUNT(open)), *place = free_place(open, COUNT(open));

        plan(machine, 3.0);
        if (begun < windows && place != NULL) {
            begin_window(machine, place, 0.05 * exp(uniform(machine) * log(8.0)));
            begun++;
            clock_real.sleep_until(NULL, moment(machine_now_s(machine) + 0.04 * uniform(machine)));
        } else {
            clock_real.sleep_until(NULL, moment(ending->end_s));
            end_window(machine, ending, coverage);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows in the first seconds of a meter, over emulated boards in virtual time: what is stated of a
 * counter's period serves from the first of them on, and where it is wrong, intervals still hold the truth.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/math/order.h"
#include "emulated_machine.h"
#include "model/gpu_model.h"
#include "window_judge.h"

/* Machines for each case, each with sixteen GPUs whose counters and sensors have phases of their own. */
enum { MACHINES = 6, WINDOWS = 12, WINDOWS_ALL = MACHINES * MADE_LOADS * WINDOWS };

static const double least_covered = 0.95, rejected_below = 0.01;
/* Where the period is about the stated one. */
static const double plain_most = 0.02, error_most = 0.005;
static const double settled_s = 1.0, begins_most_s = 5.0, shortest_s = 1.0, longest_s = 5.0;

static const struct young_case {
    const char *model, *settings;
    bool stated; /* its counter's period is about the stated one */
} cases[] = {
    {"v100", "counter=truth", true},
    {"v100", "counter=power", true},
    {"a40", "counter=truth", true},
    {"a100", "counter=truth", true},
    {"a100", "counter=power", true},
    {"h100", "counter=truth", true},
    {"a100", "counter=truth,counter-period-ms=101.14", true},
    {"h100", "counter=truth,counter-drift-ppm=100,counter-jitter-ms=1", true},
    {"h100", "counter=truth,counter-period-ms=103", false},
    {"h100", "counter=truth,counter-period-ms=106", false},
    {"h100", "counter=truth,counter-period-ms=90", false},
    {"h100", "counter=truth,counter-period-ms=50", false},
    {"h100", "counter=truth,counter-period-ms=20", false},
    {"h100", "counter=truth,counter-period-ms=200", false},
    {"v100", "counter=truth,counter-period-ms=30", false},
    {"h100", "counter=truth,counter-jitter-ms=5", false},
    {"h100", "counter=truth,counter-skip=0.2", false},
};

struct young_window {
    double begin_s, end_s;
    fly_window open; /* 0: not begun, or ended */
    double truth_j[MADE_LOADS];
};

struct young_tally {
    size_t windows, figures, covered, plain;
    double errors[WINDOWS_ALL];
};

static double truth_j(const struct machine *machine, unsigned gpu)
{
    return emulator_truth_energy_j(machine->emulator, gpu, machine->clock.now(machine->clock.state));
}

static void begin(struct machine *machine, struct young_window *window)
{
    assert_int_equal(fly_meter_begin(machine->meter, "young", &window->open, NULL), 0);
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++)
        window->truth_j[gpu] = truth_j(machine, gpu);
}

static void end(struct machine *machine, struct young_window *window, struct young_tally *tally)
{
    struct fly_device_energy energies[MADE_LOADS];
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = energies, .device_capacity = MADE_LOADS};

    assert_int_equal(fly_meter_end(machine->meter, window->open, &measured, NULL), 0);
    window->open = 0;
    for (unsigned gpu = 0; gpu < machine->gpus; gpu++) {
        const struct fly_device_energy *energy = &energies[gpu];
        double true_j = truth_j(machine, gpu) - window->truth_j[gpu];
        double error_j = fabs(energy->energy_j - true_j);

        tally->windows++;
        if (energy->source == FLY_ENERGY_UNAVAILABLE)
            continue;
        tally->errors[tally->figures++] = error_j / true_j;
        tally->covered += error_j <= energy->uncertainty_j;
        tally->plain += strstr(energy->note, "plain difference") != NULL;
    }
}

/* Opens another meter, over boards that have run for a while. */
static void open_anew(struct machine *machine)
{
    const struct meter_parts parts = {
        .devices = &machine->list, .clock = &machine->clock, .threadless = true};

    machine_move_to(machine, machine_now_s(machine) + settled_s);
    fly_meter_close(machine->meter);
    assert_int_equal(meter_new(&parts, &machine->meter, NULL), 0);
}

/* Measures windows that overlap; the first one begins with the meter. */
static void measure(const struct young_case *of, uint64_t seed, struct young_tally *tally)
{
    static struct machine machine;
    struct window_load loads[MADE_LOADS];
    struct machine_load sources[MADE_LOADS];
    struct young_window windows[WINDOWS] = {{.begin_s = 0.0}};
    double start_s;
    char settings[256];

    for (unsigned gpu = 0; gpu < MADE_LOADS; gpu++) {
        loads[gpu] = window_load_draw(gpu % (WINDOW_PERIODIC + 1), gpu_shape_find(of->model)->highest_limit_w,
                                      1000 * seed + gpu);
        sources[gpu] = (struct machine_load){window_load_next, &loads[gpu]};
    }
    snprintf(settings, sizeof settings, "time=virtual,model=%s,noise-w=2,%s", of->model, of->settings);
    machine_start(&machine, settings, true, 0.0, seed, sources);
    open_anew(&machine);
    start_s = machine_now_s(&machine);
    for (int i = 0; i < WINDOWS; i++) {
        if (i > 0)
            windows[i].begin_s = begins_most_s * test_uniform(&machine.random);
        windows[i].end_s = windows[i].begin_s +
                           shortest_s * exp(test_uniform(&machine.random) * log(longest_s / shortest_s));
    }
    for (;;) {
        double next_s = INFINITY;
        int next = 0;

        for (int i = 0; i < WINDOWS; i++) {
            double due_s = windows[i].open != 0 ? windows[i].end_s : windows[i].begin_s;

            if (due_s < next_s) {
                next_s = due_s;
                next = i;
            }
        }
        if (next_s == INFINITY)
            break;
        machine_move_to(&machine, start_s + next_s);
        if (windows[next].open == 0) {
            begin(&machine, &windows[next]);
        } else {
            end(&machine, &windows[next], tally);
            windows[next].begin_s = INFINITY;
        }
    }
    machine_stop(&machine);
}

static void test_first_seconds(void **state)
{
    static struct young_tally tally;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct young_case *of = &cases[i];
        double median, p95;

        tally = (struct young_tally){0};
        for (uint64_t seed = 1; seed <= MACHINES; seed++)
            measure(of, seed, &tally);
        qsort(tally.errors, tally.figures, sizeof tally.errors[0], order_doubles);
        median = tally.errors[tally.figures / 2];
        p95 = tally.errors[tally.figures * 95 / 100];
        printf("# %-4s %-52s %zu windows, %5.1f %% plain, error %.2f %%, p95 %.1f %%, held %5.1f %%\n",
               of->model, of->settings, tally.windows, 100.0 * (double)tally.plain / (double)tally.windows,
               100.0 * median, 100.0 * p95, 100.0 * (double)tally.covered / (double)tally.figures);
        assert_int_equal(tally.figures, tally.windows);
        if (judge_chance(tally.covered, tally.figures, least_covered) < rejected_below)
            fail_msg("%s, %s: %zu of %zu intervals hold the truth", of->model, of->settings, tally.covered,
                     tally.figures);
        if (of->stated && ((double)tally.plain > plain_most * (double)tally.windows || median > error_most))
            fail_msg("%s, %s: %zu of %zu windows are plain differences; error %g", of->model, of->settings,
                     tally.plain, tally.windows, median);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_RUN_WINDOW_H
#define FLYBALL_CLI_MEASURE_RUN_WINDOW_H

#include "cli/measure/metered_devices.h"
#include "cli/measure/run_result.h"

/*
 * The measurement around a program, or around all programs of a recurring job.
 *
 *     run_window_begin(&window, &devices, "train.py", &result);
 *     ... a program starts:       run_window_start(&window);
 *     ... and when it has ended:  run_window_note(&window);
 *     run_window_end(&window);
 *
 * Without the two in the middle, it measures from the first call to the last. With them, it
 * measures from the first start to the last end: time spent waiting for a job's log before and
 * after is not counted. Each call updates the result. Borrows everything.
 */
struct run_window {
    struct metered_devices *devices;
    struct run_result *result;
    const char *name;
    struct fly_device_energy energies[DEVICES_MAX];
    struct reading modules[DEVICES_MAX]; /* energy counters at the beginning */
    double module_energies_j[DEVICES_MAX];
    fly_window window;
    struct mono_time begin;
    bool started, noted;
};

/* If no window can be begun, closes the meter; the devices' fault says why. */
void run_window_begin(struct run_window *out_window, struct metered_devices *devices, const char *name,
                      struct run_result *result);
void run_window_start(struct run_window *window);
void run_window_note(struct run_window *window);
void run_window_end(struct run_window *window);

#endif

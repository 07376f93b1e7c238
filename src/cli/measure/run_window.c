/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/run_window.h"

#include <math.h>

static struct reading read_module(const struct run_window *window, size_t device)
{
    struct device_reading reading;

    device_read(&window->devices->list.devices[device], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY_MODULE),
                &reading);
    return reading.values[QUANTITY_ENERGY_MODULE];
}

static void begin_modules(struct run_window *window)
{
    for (size_t i = 0; i < window->devices->list.count; i++)
        window->modules[i] = read_module(window, i);
}

/* A counter that went back was reset: what the module used is not known then. */
static void take_modules(struct run_window *window)
{
    for (size_t i = 0; i < window->devices->list.count; i++) {
        const struct reading *before = &window->modules[i];
        struct reading now = before->state == READING_OK ? read_module(window, i) : *before;
        bool known = before->state == READING_OK && now.state == READING_OK && now.value >= before->value;

        window->module_energies_j[i] = known ? (double)(now.value - before->value) * 1e-6 : NAN;
    }
    window->result->module_energies_j = window->module_energies_j;
}

/* Begins a window now; without a meter it only takes the time. Returns false if none could be begun. */
static bool begin(struct run_window *window, struct fly_error *out_error)
{
    fly_window begun;

    if (window->devices->meter != NULL &&
        fly_meter_begin(window->devices->meter, window->name, &begun, out_error) < 0)
        return false;
    if (window->devices->meter != NULL)
        window->window = begun;
    window->begin = mono_now();
    begin_modules(window);
    window->result->measured.start_unix_s = (double)clock_real.date(clock_real.state).ns * 1e-9;
    return true;
}

void run_window_begin(struct run_window *out_window, struct metered_devices *devices, const char *name,
                      struct run_result *result)
{
    struct run_window *window = out_window;

    window->devices = devices;
    window->result = result;
    window->name = name;
    window->started = window->noted = false;
    if (begin(window, &devices->fault))
        return;
    fly_meter_close(devices->meter);
    devices->meter = NULL;
    (void)begin(window, NULL);
}

/* fly_meter_end, or fly_meter_peek. */
typedef int meter_look(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                       struct fly_error *out_error);

/* Takes the result of this moment. */
static int take_result(struct run_window *window, meter_look *look)
{
    struct fly_measurement *measured = &window->result->measured;
    struct metered_devices *devices = window->devices;

    measured->time_s = mono_elapsed_s(window->begin, mono_now());
    measured->size = sizeof *measured;
    measured->devices = window->energies;
    measured->device_capacity = DEVICES_MAX;
    take_modules(window);
    return devices->meter != NULL ? look(devices->meter, window->window, measured, &devices->fault) : 0;
}

static void drop(struct run_window *window, fly_window dropped)
{
    struct fly_measurement rest = {.size = sizeof rest};

    if (window->devices->meter != NULL)
        (void)fly_meter_end(window->devices->meter, dropped, &rest, NULL);
}

void run_window_start(struct run_window *window)
{
    fly_window before = window->window;

    if (!window->started && begin(window, NULL))
        drop(window, before);
    window->started = true;
}

void run_window_note(struct run_window *window)
{
    window->noted = take_result(window, fly_meter_peek) == 0;
}

void run_window_end(struct run_window *window)
{
    if (window->noted)
        drop(window, window->window);
    else if (take_result(window, fly_meter_end) < 0)
        window->result->fault = window->devices->fault.text;
    if (window->devices->meter == NULL)
        window->result->fault = window->devices->fault.text;
}

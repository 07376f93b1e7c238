/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a window's begin and end take in C, through the public headers, as the Python package calls them. For
 * bench_python.py, which compares. Nothing here passes or fails.
 *
 *     bench_window LIBRARY WINDOWS ROUNDS
 *
 * LIBRARY is the emulator's libnvidia-ml.so.1. Prints the nanoseconds of a window, for each round of so many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flyball/flyball.h>

enum { DEVICES_MAX = 16, NS_PER_S = 1000000000 };

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * NS_PER_S + (double)now.tv_nsec;
}

/* The nanoseconds of a window; negative where one cannot be measured. */
static double measure(struct fly_meter *meter, unsigned long windows)
{
    struct fly_device_energy devices[DEVICES_MAX];
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = devices, .device_capacity = DEVICES_MAX};
    double begin_ns = now_ns();

    for (unsigned long i = 0; i < windows; i++) {
        fly_window window;

        if (fly_meter_begin(meter, "bench", &window, NULL) < 0 ||
            fly_meter_end(meter, window, &measured, NULL) < 0)
            return -1.0;
    }
    return (now_ns() - begin_ns) / (double)windows;
}

int main(int count, char **arguments)
{
    struct fly_meter_options options = {
        .size = sizeof options, .nvml_path = count > 1 ? arguments[1] : NULL, .amdsmi_path = "/none"};
    unsigned long windows = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
    unsigned long rounds = count > 3 ? strtoul(arguments[3], NULL, 10) : 1;
    struct fly_meter *meter;
    struct fly_error error;

    if (fly_meter_open(&options, &meter, &error) < 0) {
        fprintf(stderr, "bench_window: %s\n", error.text);
        return 1;
    }
    for (unsigned long i = 0; i < rounds; i++)
        printf("%.1f\n", measure(meter, windows));
    fly_meter_close(meter);
    return 0;
}

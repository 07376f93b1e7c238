/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/unit_windows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"

static const double lengths_s[WINDOW_LENGTHS] = {0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0};
enum { GAP_MIN = 4 }; /* units between two windows of one length, at most, or a quarter of their own */

/* The same gaps in every run (Numerical Recipes' generator). */
static unsigned random_below(struct unit_windows *windows, unsigned bound)
{
    windows->random = windows->random * 1664525U + 1013904223U;
    return (unsigned)(((uint64_t)windows->random * bound) >> 32);
}

static unsigned gap(struct unit_windows *windows, const struct open_window *row)
{
    return 1 + random_below(windows, row->units / 4 > GAP_MIN ? row->units / 4 : GAP_MIN);
}

void unit_windows_open(const struct unit_windows_parts *parts, double unit_s,
                       struct unit_windows *out_windows)
{
    memset(out_windows, 0, sizeof *out_windows);
    out_windows->parts = *parts;
    for (unsigned i = 0; i < WINDOW_LENGTHS; i++) {
        struct open_window *row = &out_windows->rows[i];

        row->length_s = lengths_s[i];
        row->units = (unsigned)(row->length_s / unit_s + 0.5);
        row->left = gap(out_windows, row);
    }
    fprintf(parts->out,
            "length_s,units,begin_ns,end_ns,time_s,energy_j,uncertainty_j,source,integral_j,counter_j\n");
}

static void put_number(FILE *out, double value)
{
    if (!isfinite(value))
        fputc(',', out);
    else
        fprintf(out, ",%.9g", value);
}

static int begin(struct unit_windows *windows, struct open_window *row, struct fly_error *out_error)
{
    int code;

    row->begin_ns = mono_now().ns;
    code = fly_meter_begin(windows->parts.gpu->meter, "verify", &row->window, out_error);
    row->counter_begin_j = gpu_counter_j(windows->parts.gpu);
    row->is_open = code == 0;
    row->left = row->units;
    return code;
}

static int end(struct unit_windows *windows, struct open_window *row, struct fly_error *out_error)
{
    struct gpu_at_hand *gpu = windows->parts.gpu;
    struct fly_device_energy energy = {.energy_j = NAN};
    struct fly_measurement measured = {.size = sizeof measured, .devices = &energy, .device_capacity = 1};
    int64_t end_ns = mono_now().ns;
    int code = fly_meter_end(gpu->meter, row->window, &measured, out_error);
    FILE *out = windows->parts.out;

    row->is_open = false;
    row->left = gap(windows, row);
    if (code < 0)
        return code;
    fprintf(out, "%g,%u,%" PRId64 ",%" PRId64, row->length_s, row->units, row->begin_ns, end_ns);
    put_number(out, energy.time_s);
    put_number(out, energy.energy_j);
    put_number(out, energy.uncertainty_j);
    fprintf(out, ",%s", fly_energy_source_name(energy.source));
    put_number(out, energy.integral_j);
    put_number(out, gpu_counter_j(windows->parts.gpu) - row->counter_begin_j);
    fputc('\n', out);
    return 0;
}

int unit_windows_between(struct unit_windows *windows, struct fly_error *out_error)
{
    int code = 0;

    for (unsigned i = 0; code == 0 && i < WINDOW_LENGTHS; i++) {
        struct open_window *row = &windows->rows[i];

        if (row->units == 0 || --row->left > 0)
            continue;
        code = row->is_open ? end(windows, row, out_error) : begin(windows, row, out_error);
    }
    return code;
}

void unit_windows_close(struct unit_windows *windows)
{
    struct fly_error ignored;
    struct fly_measurement measured = {.size = sizeof measured};

    for (unsigned i = 0; i < WINDOW_LENGTHS; i++) {
        if (windows->rows[i].is_open)
            (void)fly_meter_end(windows->parts.gpu->meter, windows->rows[i].window, &measured, &ignored);
    }
}

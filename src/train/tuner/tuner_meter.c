/* SPDX-License-Identifier: Apache-2.0 */
/* What the meter measures on this rank: the window of a limit, and the cost of the search. */
#include <math.h>
#include <string.h>

#include "meter/meter.h"
#include "train/tuner/tuner_private.h"

struct fly_measurement tuner_measurement(struct fly_tuner *tuner)
{
    return (struct fly_measurement){.size = sizeof(struct fly_measurement),
                                    .devices = tuner->energies,
                                    .device_capacity = tuner->device_count};
}

static bool is_gpu(const struct fly_meter *meter, size_t device)
{
    return strcmp(fly_meter_device_kind(meter, device), "GPU") == 0;
}

size_t tuner_count_gpus(const struct fly_meter *meter, const char **out_name)
{
    size_t count = 0;

    for (size_t i = 0; i < fly_meter_device_count(meter); i++) {
        if (is_gpu(meter, i) && count++ == 0)
            *out_name = fly_meter_device_name(meter, i);
    }
    return count;
}

bool tuner_is_gpu(const struct fly_tuner *tuner, size_t device)
{
    return is_gpu(tuner->options.meter, device) && !tuner->work.left_alone[device];
}

double tuner_enforced_w(const struct fly_tuner *tuner, double *out_most_w)
{
    const struct device_list *list = meter_devices(tuner->options.meter);
    double least_w = INFINITY, most_w = -INFINITY;

    for (size_t i = 0; i < list->count && tuner->options.knob == FLY_TUNER_POWER_LIMIT; i++) {
        struct device_reading reading;
        const struct reading *enforced = &reading.values[QUANTITY_POWER_LIMIT_ENFORCED];

        if (list->devices[i].info.kind != DEVICE_GPU || tuner->work.left_alone[i])
            continue;
        device_read(&list->devices[i], tuner->clock, QUANTITY_BIT(QUANTITY_POWER_LIMIT_ENFORCED), &reading);
        if (enforced->state == READING_OK)
            least_w = fmin(least_w, (double)enforced->value / 1e3);
        most_w = fmax(most_w, enforced->state == READING_OK ? (double)enforced->value / 1e3 : INFINITY);
    }
    *out_most_w = isinf(least_w) ? INFINITY : most_w;
    return least_w;
}

bool tuner_has_energy(const struct fly_device_energy *energy)
{
    return (energy->source == FLY_ENERGY_COUNTER || energy->source == FLY_ENERGY_INTEGRATED) &&
           isfinite(energy->energy_j);
}

bool tuner_note_work(struct fly_tuner *tuner)
{
    static const double rounding = 1e-6; /* shares of time are differences of sums */
    struct tuner_work *work = &tuner->work;
    bool late = false;

    for (size_t i = 0; i < tuner->device_count; i++) {
        work->seen[i] |= is_gpu(tuner->options.meter, i) && tuner->energies[i].idle_share < 1.0 - rounding;
        late |= work->left_alone[i] && work->seen[i];
    }
    return late;
}

/* The GPUs' energy in the meter's answer; NAN unless all are known. */
double tuner_gpu_energy_j(struct fly_tuner *tuner, double *out_half_j)
{
    double sum_j = 0.0;
    size_t gpus = 0;

    *out_half_j = 0.0;
    for (size_t i = 0; i < tuner->device_count; i++) {
        if (!tuner_is_gpu(tuner, i))
            continue;
        gpus++;
        if (!tuner_has_energy(&tuner->energies[i]))
            return NAN;
        sum_j += tuner->energies[i].energy_j;
        *out_half_j += tuner->energies[i].uncertainty_j;
    }
    return gpus > 0 ? sum_j : NAN;
}

void tuner_window_drop(struct fly_tuner *tuner)
{
    if (tuner->window_open)
        (void)fly_meter_end(tuner->options.meter, tuner->window,
                            &(struct fly_measurement){.size = sizeof(struct fly_measurement)}, NULL);
    tuner->window_open = tuner->times.running = false;
}

void tuner_window_forget(struct fly_tuner *tuner)
{
    tuner->times = (struct step_times){0};
    tuner->parts = (struct tuner_parts){0};
}

void tuner_cost_open(struct fly_tuner *tuner)
{
    struct tuner_cost *cost = &tuner->cost;

    if (cost->open || tuner->reason != FLY_TUNER_GOES_ON)
        return;
    cost->open = fly_meter_begin(tuner->options.meter, "power search", &cost->window, NULL) == 0;
    cost->known &= cost->open;
}

void tuner_cost_pause(struct fly_tuner *tuner)
{
    struct tuner_cost *cost = &tuner->cost;
    struct fly_measurement measured = tuner_measurement(tuner);
    double half_j;

    if (!cost->open)
        return;
    cost->open = false;
    if (fly_meter_end(tuner->options.meter, cost->window, &measured, NULL) < 0) {
        cost->known = false;
        return;
    }
    (void)tuner_note_work(tuner);
    cost->energy_j += tuner_gpu_energy_j(tuner, &half_j);
    cost->time_s += measured.time_s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A meter over open devices: how it is made, and how windows begin and end. */
#include "meter/meter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "meter/meter_handle.h"
#include "meter/verdict.h"

enum { WINDOWS_DEFAULT = 256, WINDOWS_MOST = 65536 };
static const double sample_default_hz = 10.0, sample_most_hz = 1000.0;

static const char *const source_names[] = {
    [FLY_ENERGY_UNAVAILABLE] = "unavailable",
    [FLY_ENERGY_COUNTER] = "counter",
    [FLY_ENERGY_INTEGRATED] = "integrated",
    [FLY_ENERGY_ESTIMATED] = "estimated",
};

const char *fly_energy_source_name(enum fly_energy_source source)
{
    size_t index = (size_t)source;

    return index < sizeof source_names / sizeof source_names[0] ? source_names[index] : source_names[0];
}

/* Returns the sampling period: as requested, else ten samples a second, or as slow as the slowest sensor. */
static double sample_period_s(const struct meter_parts *parts)
{
    double least_s = INFINITY;

    if (parts->sample_hz > 0.0)
        return 1.0 / parts->sample_hz;
    for (size_t i = 0; i < parts->devices->count; i++)
        least_s = fmin(least_s, parts->devices->devices[i].info.sensor.power_period_s);
    return isfinite(least_s) ? fmax(least_s, 1.0 / sample_default_hz) : 1.0 / sample_default_hz;
}

static int check(const struct meter_parts *parts, struct fly_error *out_error)
{
    if (!(parts->sample_hz >= 0.0 && parts->sample_hz <= sample_most_hz))
        return error_set(out_error, FLY_EUSAGE,
                         "the rate of sampling is %g Hz; give 0 for the default, or at most %g",
                         parts->sample_hz, sample_most_hz);
    if (parts->windows_max > WINDOWS_MOST)
        return error_set(out_error, FLY_EUSAGE, "%u windows at a time are too many; give at most %d",
                         parts->windows_max, WINDOWS_MOST);
    return 0;
}

/* Frees memory; the devices stay open. */
static void free_parts(struct fly_meter *meter)
{
    for (size_t i = 0; meter->accounts != NULL && i < meter->devices->count; i++)
        account_deinit(&meter->accounts[i]);
    meter_free_samples(meter);
    windows_deinit(&meter->windows);
    free(meter->accounts);
    free(meter->owned_claims);
    free(meter->nvml_path);
    free(meter->amdsmi_path);
    free(meter);
}

static bool allocate_parts(struct fly_meter *meter, uint32_t windows_max, double period_s)
{
    size_t count = meter->devices->count;

    if (!windows_init(&meter->windows, windows_max))
        return false;
    meter->accounts = calloc(count + 1, sizeof meter->accounts[0]);
    if (meter->accounts == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!account_init(&meter->accounts[i], &meter->devices->devices[i], windows_max, period_s))
            return false;
    }
    return true;
}

int meter_new(const struct meter_parts *parts, struct fly_meter **out_meter, struct fly_error *out_error)
{
    uint32_t windows_max = parts->windows_max != 0 ? parts->windows_max : WINDOWS_DEFAULT;
    int code = check(parts, out_error);
    struct fly_meter *meter;
    double period_s;

    if (code < 0)
        return code;
    period_s = sample_period_s(parts);
    meter = calloc(1, sizeof *meter);
    if (meter == NULL)
        return error_no_memory(out_error);
    *meter = (struct fly_meter){
        .forks = fork_generation(),
        .devices = parts->devices,
        .clock = parts->clock != NULL ? parts->clock : &clock_real,
        .synchronize = parts->synchronize,
        .synchronize_data = parts->synchronize_data,
    };
    if (!allocate_parts(meter, windows_max, period_s)) {
        free_parts(meter);
        return error_no_memory(out_error);
    }
    sampler_init(&meter->sampler, meter->accounts, meter->devices->count, meter->clock, period_s);
    if (!parts->threadless && meter->devices->count > 0 && !sampler_start(&meter->sampler)) {
        free_parts(meter);
        return error_set(
            out_error, FLY_ENOMEM,
            "no thread can be started to sample power; raise the limit of processes (ulimit -u)");
    }
    *out_meter = meter;
    return 0;
}

static bool is_inert(const struct fly_meter *meter)
{
    return meter->forks != fork_generation();
}

void fly_meter_close(struct fly_meter *meter)
{
    struct device_list *owned;
    bool inert;

    if (meter == NULL)
        return;
    owned = meter->owned;
    inert = is_inert(meter);
    if (!inert)
        sampler_stop(&meter->sampler);
    if (!inert && meter->owned_claims != NULL)
        claims_release(meter->owned_claims);
    free_parts(meter);
    if (owned != NULL && !inert)
        device_list_close(owned);
    free(owned);
}

static int refuse_inert(struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_ESTATE,
        "the meter was opened before a fork and measures in the parent alone; open another here");
}

static void synchronize(const struct fly_meter *meter)
{
    if (meter->synchronize != NULL)
        meter->synchronize(meter->synchronize_data);
}

static void read_edge(struct fly_meter *meter, size_t device, struct device_reading *out_reading)
{
    struct account *account = &meter->accounts[device];

    device_read(account->device, meter->clock, account_wanted(account), out_reading);
}

int meter_begin_at_once(struct fly_meter *meter, const char *name, fly_window *out_window,
                        struct fly_error *out_error)
{
    struct window *window;
    uint32_t slot;

    if (is_inert(meter))
        return refuse_inert(out_error);
    if (!windows_take(&meter->windows, name, &slot))
        return error_set(out_error, FLY_ELIMIT,
                         "window '%.60s': %u windows are open already; end some, or raise windows_max",
                         name != NULL ? name : "", meter->windows.count);
    window = &meter->windows.slots[slot];
    window->begin_date = meter->clock->date(meter->clock->state);
    window->begin = meter->clock->now(meter->clock->state);
    for (size_t i = 0; i < meter->devices->count; i++) {
        struct device_reading reading;

        read_edge(meter, i, &reading);
        account_begin(&meter->accounts[i], slot, &reading);
    }
    *out_window = windows_open(&meter->windows, slot);
    return 0;
}

int fly_meter_begin(struct fly_meter *meter, const char *name, fly_window *out_window,
                    struct fly_error *out_error)
{
    if (!is_inert(meter))
        synchronize(meter);
    return meter_begin_at_once(meter, name, out_window, out_error);
}

/* Measures a claimed window up to now; at its end, frees its marks. */
static void tell_window(struct fly_meter *meter, uint32_t slot, bool ends,
                        struct fly_measurement *out_measurement)
{
    const struct window *window = &meter->windows.slots[slot];

    out_measurement->device_count = meter->devices->count;
    out_measurement->start_unix_s = (double)window->begin_date.ns * 1e-9;
    out_measurement->time_s = mono_elapsed_s(window->begin, meter->clock->now(meter->clock->state));
    memcpy(out_measurement->name, window->name, sizeof out_measurement->name);
    for (size_t i = 0; i < meter->devices->count; i++) {
        struct device_reading reading;
        struct account_window known;

        read_edge(meter, i, &reading);
        if (ends)
            account_end(&meter->accounts[i], slot, &reading, &known);
        else
            account_peek(&meter->accounts[i], slot, &reading, &known);
        if (out_measurement->devices != NULL && i < out_measurement->device_capacity)
            verdict_give(&meter->devices->devices[i].info, &known, &out_measurement->devices[i]);
    }
}

static int claim_window(struct fly_meter *meter, fly_window window, const struct fly_measurement *measurement,
                        uint32_t *out_slot, struct fly_error *out_error)
{
    if (is_inert(meter))
        return refuse_inert(out_error);
    if (measurement->size < sizeof *measurement)
        return error_set(out_error, FLY_EUSAGE,
                         "meter: measurement.size is %zu; set it to sizeof measurement", measurement->size);
    if (!windows_claim(&meter->windows, window, out_slot))
        return error_set(out_error, FLY_ESTATE,
                         "window %#llx is not open; each window ends once, on the meter that began it",
                         (unsigned long long)window);
    return 0;
}

static int end_or_peek(struct fly_meter *meter, fly_window window, bool ends, bool synchronizes,
                       struct fly_measurement *out_measurement, struct fly_error *out_error)
{
    uint32_t slot = 0;
    int code = claim_window(meter, window, out_measurement, &slot, out_error);

    if (code < 0)
        return code;
    if (synchronizes)
        synchronize(meter);
    tell_window(meter, slot, ends, out_measurement);
    if (ends)
        windows_give_back(&meter->windows, slot);
    else
        windows_reopen(&meter->windows, slot);
    return 0;
}

int fly_meter_peek(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                   struct fly_error *out_error)
{
    return end_or_peek(meter, window, false, true, out_measurement, out_error);
}

int fly_meter_end(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                  struct fly_error *out_error)
{
    return end_or_peek(meter, window, true, true, out_measurement, out_error);
}

int meter_peek_at_once(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                       struct fly_error *out_error)
{
    return end_or_peek(meter, window, false, false, out_measurement, out_error);
}

int meter_end_at_once(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                      struct fly_error *out_error)
{
    return end_or_peek(meter, window, true, false, out_measurement, out_error);
}

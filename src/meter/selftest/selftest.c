/* SPDX-License-Identifier: Apache-2.0 */
/* Times, polls and measures; selftest_findings.c says what the figures mean. */
#include "meter/selftest/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "meter/meter.h"

enum { PERIODS_MAX = 4096 };
static const double calls_max_s = 1.0;

const enum quantity selftest_watched[SELFTEST_WATCHED] = {QUANTITY_ENERGY, QUANTITY_POWER_INSTANT,
                                                          QUANTITY_POWER_AVERAGE};

static const char *const stage_names[] = {[SELFTEST_IDLE] = "idle", [SELFTEST_LOADED] = "loaded"};
_Static_assert(sizeof stage_names / sizeof stage_names[0] == SELFTEST_STAGE_COUNT,
               "one name for every stage");

const char *selftest_stage_name(enum selftest_stage stage)
{
    return stage_names[stage];
}

void selftest_latencies(const struct device *device, const struct clock *clock,
                        struct selftest_result *result)
{
    double seconds[SELFTEST_CALLS];

    for (int i = 0; i < QUANTITY_COUNT; i++) {
        struct mono_time end = mono_after_s(clock->now(clock->state), calls_max_s);
        struct device_reading reading = {0};
        size_t calls = 0;

        do {
            device_read(device, clock, QUANTITY_BIT(i), &reading);
            seconds[calls++] = mono_elapsed_s(reading.before, reading.after);
        } while (calls < SELFTEST_CALLS && reading.after.ns < end.ns);
        result->latencies[i].reading = reading.values[i];
        result->latencies[i].seconds = spread_of(seconds, calls);
    }
}

/* State of one device in one stage. */
struct watch {
    struct updates updates[SELFTEST_WATCHED];
    double periods_s[SELFTEST_WATCHED][PERIODS_MAX];
    double utilization_sum;
    size_t utilization_count;
};

struct stage {
    const struct selftest_options *options;
    const struct clock *clock;
    struct fly_meter *meter;
    struct watch *watches; /* one for each device */
};

static void watch_init(struct watch *watch)
{
    for (int i = 0; i < SELFTEST_WATCHED; i++)
        updates_init(&watch->updates[i], watch->periods_s[i], PERIODS_MAX);
}

/* Reads each quantity in a call of its own, so that its moment is known as exactly as possible. */
static void poll_device(const struct stage *stage, size_t device)
{
    const struct device *polled = &stage->options->devices->devices[device];
    struct watch *watch = &stage->watches[device];

    for (int i = 0; i < SELFTEST_WATCHED; i++) {
        enum quantity quantity = selftest_watched[i];
        struct device_reading reading;

        device_read(polled, stage->clock, QUANTITY_BIT(quantity), &reading);
        if (reading.values[quantity].state == READING_OK)
            updates_add(&watch->updates[i], reading.after, reading.values[quantity].value);
        if (quantity == QUANTITY_ENERGY)
            meter_add(stage->meter, device, &reading);
    }
}

static void note_sample(const struct stage *stage, size_t device)
{
    struct device_reading sample;
    const struct reading *utilization = &sample.values[QUANTITY_UTILIZATION];

    if (!meter_latest(stage->meter, device, &sample) || utilization->state != READING_OK)
        return;
    stage->watches[device].utilization_sum += (double)utilization->value / 100.0;
    stage->watches[device].utilization_count++;
}

static void sample(const struct stage *stage)
{
    meter_sample(stage->meter);
    for (size_t i = 0; i < stage->options->devices->count; i++)
        note_sample(stage, i);
}

/* Polls until the end, and lets the meter sample whenever a sample is due. */
static int poll_until(const struct stage *stage, struct mono_time end, struct fly_error *out_error)
{
    const struct selftest_options *options = stage->options;
    const struct clock *clock = stage->clock;
    struct mono_time now = clock->now(clock->state);

    while (now.ns < end.ns) {
        struct mono_time next = mono_after_s(now, options->poll_s);

        if (options->go_on != NULL && !options->go_on(options->data))
            return error_set(out_error, FLY_ESTATE, "the test was interrupted; let it run to its end");
        if (now.ns >= meter_next_sample(stage->meter).ns)
            sample(stage);
        for (size_t i = 0; i < options->devices->count; i++)
            poll_device(stage, i);
        clock->sleep_until(clock->state, next);
        now = clock->now(clock->state);
    }
    return 0;
}

static struct selftest_window window_of(const struct fly_device_energy *energy, struct watch *watch)
{
    struct selftest_window window = {
        .measured = true,
        .time_s = energy->time_s,
        .counter_j = energy->source == FLY_ENERGY_COUNTER ? energy->energy_j : NAN,
        .counter_uncertainty_j = energy->source == FLY_ENERGY_COUNTER ? energy->uncertainty_j : NAN,
        .integral_j = energy->integral_j,
        .mean_power_w = energy->mean_power_w,
        .utilization = NAN,
        .temperature_max_c = energy->temperature_max_c,
    };

    window.integral_excess = window.integral_j / window.counter_j - 1.0;
    if (!isfinite(window.integral_excess))
        window.integral_excess = NAN;
    if (watch->utilization_count > 0)
        window.utilization = watch->utilization_sum / (double)watch->utilization_count;
    snprintf(window.note, sizeof window.note, "%s", energy->note);
    for (int i = 0; i < SELFTEST_WATCHED; i++)
        window.updates[i] = updates_find(&watch->updates[i]);
    return window;
}

static void note_window(const struct stage *stage, size_t device, const struct fly_device_energy *energy,
                        struct selftest_window *window)
{
    *window = window_of(energy, &stage->watches[device]);
    meter_counter(stage->meter, device, &window->counter);
}

static int measure(const struct stage *stage, enum selftest_stage which, struct selftest_result *results,
                   struct fly_error *out_error)
{
    static struct fly_device_energy energies[DEVICES_MAX]; /* static, because it is large */
    struct fly_measurement measurement = {
        .size = sizeof measurement, .devices = energies, .device_capacity = DEVICES_MAX};
    fly_window window;
    int code = fly_meter_begin(stage->meter, selftest_stage_name(which), &window, out_error);

    if (code == 0)
        code = poll_until(stage,
                          mono_after_s(stage->clock->now(stage->clock->state), stage->options->duration_s),
                          out_error);
    if (code == 0)
        code = fly_meter_end(stage->meter, window, &measurement, out_error);
    for (size_t i = 0; code == 0 && i < stage->options->devices->count; i++)
        note_window(stage, i, &energies[i], &results[i].windows[which]);
    return code;
}

int selftest_measure(const struct selftest_options *options, enum selftest_stage which,
                     struct selftest_result *results, struct fly_error *out_error)
{
    struct meter_parts parts = {.devices = options->devices, .clock = options->clock, .threadless = true};
    struct stage stage = {.options = options, .clock = options->clock != NULL ? options->clock : &clock_real};
    int code;

    stage.watches = calloc(options->devices->count + 1, sizeof *stage.watches);
    if (stage.watches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < options->devices->count; i++)
        watch_init(&stage.watches[i]);
    code = meter_new(&parts, &stage.meter, out_error);
    if (code == 0) {
        code = measure(&stage, which, results, out_error);
        fly_meter_close(stage.meter);
    }
    free(stage.watches);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Measures level after level; selftest_turning_findings.c says what the figures mean. */
#include "meter/selftest/selftest_turning.h"

#include <math.h>

#include "base/error.h"
#include "meter/meter.h"

double selftest_kept_w(double limit_w)
{
    return limit_w + fmax(0.03 * limit_w, 5);
}

/* State of one device at one level. */
struct watch {
    bool seen, above;       /* a reading was made; the last reading was above the limit */
    struct mono_time under; /* when the first of the latest readings under the limit was made */
    double power_sum_w;     /* sum in the window */
    size_t power_count;
    double clock_sum; /* sum in the window */
    size_t clock_count;
    bool work_known;
    double work; /* at the begin of the window */
};

struct level {
    const struct selftest_turning_options *options;
    const struct clock *clock;
    struct fly_meter *meter;
    struct selftest_turning *turnings;
    int number;
    struct mono_time set;
    struct watch watches[DEVICES_MAX];
};

static struct mono_time now_of(const struct level *level)
{
    return level->clock->now(level->clock->state);
}

static double read_limit_w(const struct level *level, size_t device)
{
    struct device_reading reading;
    const struct reading *limit = &reading.values[QUANTITY_POWER_LIMIT];

    device_read(&level->options->devices->devices[device], level->clock, QUANTITY_BIT(QUANTITY_POWER_LIMIT),
                &reading);
    return limit->state == READING_OK ? (double)limit->value * 1e-3 : NAN;
}

/* Compares the power with the limit once, and reads the clock. */
static void poll_device(struct level *level, size_t device, bool in_window)
{
    static const quantity_set wanted = QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                                       QUANTITY_BIT(QUANTITY_POWER_AVERAGE) |
                                       QUANTITY_BIT(QUANTITY_CLOCK_GPU);
    const struct selftest_level *measured = &level->turnings[device].levels[level->number];
    struct watch *watch = &level->watches[device];
    struct device_reading reading;
    const struct reading *power = &reading.values[QUANTITY_POWER_INSTANT];
    const struct reading *clock = &reading.values[QUANTITY_CLOCK_GPU];

    device_read(&level->options->devices->devices[device], level->clock, wanted, &reading);
    if (power->state != READING_OK)
        power = &reading.values[QUANTITY_POWER_AVERAGE];
    if (power->state == READING_OK) {
        bool above = (double)power->value * 1e-3 > selftest_kept_w(measured->limit_w);

        if (!above && (watch->above || !watch->seen))
            watch->under = reading.after;
        watch->above = above;
        watch->seen = true;
        watch->power_sum_w += in_window ? (double)power->value * 1e-3 : 0;
        watch->power_count += in_window ? 1 : 0;
    }
    if (in_window && clock->state == READING_OK) {
        watch->clock_sum += (double)clock->value;
        watch->clock_count++;
    }
}

static int poll_until(struct level *level, struct mono_time end, bool in_window, struct fly_error *out_error)
{
    const struct selftest_turning_options *options = level->options;
    struct mono_time now = now_of(level);

    while (now.ns < end.ns) {
        struct mono_time next = mono_after_s(now, options->poll_s);

        if (options->go_on != NULL && !options->go_on(options->data))
            return error_set(out_error, FLY_ESTATE, "the test was interrupted; let it run to its end");
        if (now.ns >= meter_next_sample(level->meter).ns)
            meter_sample(level->meter);
        for (size_t i = 0; i < options->devices->count; i++) {
            if (level->turnings[i].tried)
                poll_device(level, i, in_window);
        }
        level->clock->sleep_until(level->clock->state, next);
        now = now_of(level);
    }
    return 0;
}

static int set_level(struct level *level, struct fly_error *out_error)
{
    const struct selftest_turning_options *options = level->options;
    int code;

    level->set = now_of(level);
    code = options->set(options->data, level->number, out_error);
    for (size_t i = 0; i < options->devices->count && code == 0; i++) {
        level->watches[i] = (struct watch){.seen = false};
        if (level->turnings[i].tried)
            level->turnings[i].levels[level->number] =
                (struct selftest_level){read_limit_w(level, i), NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    }
    return code;
}

static void note_work(struct level *level)
{
    const struct selftest_turning_options *options = level->options;

    for (size_t i = 0; i < options->devices->count; i++)
        level->watches[i].work_known =
            options->work != NULL && options->work(options->data, i, &level->watches[i].work);
}

static void conclude(const struct level *level, size_t device, const struct fly_device_energy *energy)
{
    const struct selftest_turning_options *options = level->options;
    const struct watch *watch = &level->watches[device];
    struct selftest_level *measured = &level->turnings[device].levels[level->number];
    double work;

    measured->mean_power_w = energy->mean_power_w;
    measured->uncertainty_w = energy->uncertainty_j / energy->time_s;
    measured->capped_share = energy->capped_share;
    if (watch->seen && !watch->above)
        measured->settled_s = mono_elapsed_s(level->set, watch->under);
    if (watch->power_count > 0)
        measured->mean_reading_w = watch->power_sum_w / (double)watch->power_count;
    if (watch->clock_count > 0)
        measured->clock_mhz = watch->clock_sum / (double)watch->clock_count;
    if (watch->work_known && options->work(options->data, device, &work))
        measured->work_per_s = (work - watch->work) / energy->time_s;
}

static int measure_level(struct level *level, struct fly_error *out_error)
{
    static struct fly_device_energy energies[DEVICES_MAX]; /* static, because it is large */
    const struct selftest_turning_options *options = level->options;
    struct fly_measurement measurement = {
        .size = sizeof measurement, .devices = energies, .device_capacity = DEVICES_MAX};
    fly_window window = 0;
    int code = set_level(level, out_error);

    if (code == 0)
        code = poll_until(level, mono_after_s(now_of(level), options->settle_s), false, out_error);
    if (code == 0)
        code = fly_meter_begin(level->meter, "level", &window, out_error);
    if (code < 0)
        return code;
    note_work(level);
    code = poll_until(level, mono_after_s(now_of(level), options->duration_s), true, out_error);
    if (code == 0)
        code = fly_meter_end(level->meter, window, &measurement, out_error);
    for (size_t i = 0; i < options->devices->count && code == 0; i++) {
        if (level->turnings[i].tried)
            conclude(level, i, &energies[i]);
    }
    return code;
}

int selftest_turn(const struct selftest_turning_options *options, struct selftest_turning *turnings,
                  struct fly_error *out_error)
{
    static struct level level; /* static, because it is large */
    struct meter_parts parts = {.devices = options->devices, .clock = options->clock, .threadless = true};
    int code;

    level = (struct level){.options = options,
                           .clock = options->clock != NULL ? options->clock : &clock_real,
                           .turnings = turnings};
    code = meter_new(&parts, &level.meter, out_error);
    if (code < 0)
        return code;
    for (level.number = 0; level.number < SELFTEST_LEVELS && code == 0; level.number++)
        code = measure_level(&level, out_error);
    fly_meter_close(level.meter);
    return code;
}

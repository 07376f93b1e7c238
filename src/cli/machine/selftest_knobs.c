/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine/selftest_knobs.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/machine/selftest_kill.h"
#include "cli/options/knob_options.h"
#include "knob/repair.h"

static const char program_name[] = "flyball selftest";

/* Time for readings to follow a new limit, and for a mean to be measured. */
static const double settle_least_s = 0.4, window_least_s = 0.5;
static const double check_s = 0.4; /* between two checks of the guard and of what others set */

/* Large; there is only one. */
static struct turning {
    const struct selftest_knobs *knobs;
    struct knob *knob;
    const struct device *gpus[DEVICES_MAX];
    size_t places[DEVICES_MAX]; /* places of the GPUs among the devices */
    size_t count;
    bool chosen[DEVICES_MAX]; /* devices that take part */
    struct selftest_load loads[DEVICES_MAX];
    struct mono_time check_due;
    struct fly_error lost; /* code < 0: the limits are no longer under our control */
} turning;

static double limit_w(const struct device *gpu)
{
    struct device_reading reading;
    const struct reading *limit = &reading.values[QUANTITY_POWER_LIMIT];

    device_read(gpu, &clock_real, QUANTITY_BIT(QUANTITY_POWER_LIMIT), &reading);
    return limit->state == READING_OK ? (double)limit->value * 1e-3 : NAN;
}

static struct selftest_turning *turning_of(size_t gpu)
{
    return &turning.knobs->results[turning.places[gpu]].turning;
}

static void list_gpus(void)
{
    turning.count = 0;
    for (size_t i = 0; i < turning.knobs->devices->count; i++) {
        if (turning.knobs->devices->devices[i].info.kind != DEVICE_GPU)
            continue;
        turning.gpus[turning.count] = &turning.knobs->devices->devices[i];
        turning.places[turning.count++] = i;
    }
    for (size_t i = 0; i < turning.count; i++)
        *turning_of(i) = (struct selftest_turning){
            .wanted = true, .before_w = limit_w(turning.gpus[i]), .after_w = NAN, .back_s = NAN};
}

/* Excludes one GPU; refuse_all excludes all that take part. Without permission all need the same remedy. */
static void refuse(size_t gpu, const struct fly_error *why)
{
    struct selftest_turning *of = turning_of(gpu);

    of->tried = false;
    turning.chosen[turning.places[gpu]] = false;
    if (why->code == FLY_EPERM && geteuid() != 0)
        snprintf(of->why_not, sizeof of->why_not,
                 "its driver lets root alone set it; run 'sudo flyball selftest --turn-knobs'");
    else
        snprintf(of->why_not, sizeof of->why_not, "%.300s", why->text);
}

static void refuse_all(const struct fly_error *why)
{
    for (size_t i = 0; i < turning.count; i++) {
        if (turning_of(i)->tried)
            refuse(i, why);
    }
}

/* Returns whether any GPU takes part. */
static bool open_knobs(void)
{
    char readonly[CLI_READONLY_MAX];
    struct knob_options options = cli_knob_options(turning.knobs->call, program_name, readonly);
    struct fly_error error = {.code = 0};
    bool any = false;

    for (size_t i = 0; i < turning.count; i++)
        turning_of(i)->tried = true;
    if (knob_open(&options, turning.gpus, turning.count, &turning.knob, &error) < 0) {
        refuse_all(&error);
        return false;
    }
    for (size_t i = 0; i < turning.count; i++) {
        if (knob_may_turn(turning.knob, i, &error) < 0)
            refuse(i, &error);
        turning.chosen[turning.places[i]] = turning_of(i)->tried;
        any = any || turning_of(i)->tried;
    }
    return any;
}

/* Returns a level's limit: equal steps from the highest limit down to the lowest, whole watts in between. */
static int64_t level_mw(const struct device *gpu, int level)
{
    struct device_reading reading;
    const struct reading *lowest = &reading.values[QUANTITY_POWER_LIMIT_MIN];
    const struct reading *highest = &reading.values[QUANTITY_POWER_LIMIT_MAX];

    device_read(gpu, &clock_real,
                QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX), &reading);
    if (lowest->state != READING_OK || highest->state != READING_OK)
        return 0;
    if (level == SELFTEST_LEVELS - 1)
        return lowest->value;
    return highest->value - (highest->value - lowest->value) * level / (SELFTEST_LEVELS - 1) / 1000 * 1000;
}

static int set_level(void *data, int level, struct fly_error *out_error)
{
    int64_t limits_mw[DEVICES_MAX] = {0};

    (void)data;
    for (size_t i = 0; i < turning.count; i++) {
        if (turning_of(i)->tried)
            limits_mw[i] = level_mw(turning.gpus[i], level);
    }
    return knob_set(turning.knob, limits_mw, out_error);
}

static bool work_of(void *data, size_t device, double *out_work)
{
    uint64_t steps;

    (void)data;
    if (!cuda_load_steps(&turning.loads[device].load, &steps))
        return false;
    *out_work = (double)steps;
    return true;
}

static bool go_on(void *data)
{
    struct mono_time now = mono_now();

    (void)data;
    if (now.ns >= turning.check_due.ns) {
        turning.check_due = mono_after_s(now, check_s);
        if (knob_check(turning.knob, &turning.lost) < 0)
            return false;
    }
    return !stop_signals_wait(turning.knobs->stop, now);
}

/* Measures the levels. If anything but a signal ends them early, that is a finding and no error. */
static int measure_levels(struct fly_error *out_error)
{
    const struct selftest_knobs *knobs = turning.knobs;
    struct selftest_turning_options options = {
        .devices = knobs->devices,
        .settle_s = fmax(knobs->duration_s / 4, settle_least_s),
        .duration_s = fmax(knobs->duration_s, window_least_s),
        .poll_s = knobs->poll_s,
        .set = set_level,
        .work = work_of,
        .go_on = go_on,
    };
    static struct selftest_turning turnings[DEVICES_MAX];
    struct fly_error error = {.code = 0};
    int code;

    for (size_t i = 0; i < knobs->devices->count; i++)
        turnings[i] = knobs->results[i].turning;
    code = selftest_turn(&options, turnings, &error);
    for (size_t i = 0; i < knobs->devices->count; i++)
        knobs->results[i].turning = turnings[i];
    if (code == 0)
        return 0;
    if (knobs->stop->stopped || code == FLY_ENOMEM)
        return error_set(out_error, code, "%s", error.text);
    refuse_all(turning.lost.code < 0 ? &turning.lost : &error);
    return 0;
}

static int load_and_measure(struct fly_error *out_error)
{
    const struct selftest_knobs *knobs = turning.knobs;
    struct selftest_load_options options = knobs->load;
    int code;

    options.chosen = turning.chosen;
    options.duration_max_s = SELFTEST_LEVELS * (2 * knobs->duration_s + settle_least_s + window_least_s) + 60;
    selftest_loads_start(&options, knobs->devices, turning.loads);
    code = measure_levels(out_error);
    selftest_loads_stop(knobs->devices, turning.loads);
    return code;
}

static bool any_tried(void)
{
    bool any = false;

    for (size_t i = 0; i < turning.count; i++)
        any = any || turning_of(i)->tried;
    return any;
}

/* Restores the limits; a warning names those that could not be restored. */
static void close_knobs(void)
{
    static struct knob_report reports[DEVICES_MAX];

    if (turning.knob == NULL)
        return;
    knob_close(turning.knob, reports);
    turning.knob = NULL;
    for (size_t i = 0; i < turning.count; i++) {
        if (reports[i].state == KNOB_STUCK)
            cli_warn(turning.knobs->call, "%s; 'flyball power restore' tries again", reports[i].error.text);
    }
}

/* Restores what a killed process may have left in spite of its guard, and records the final limits. */
static void end(void)
{
    static struct repair repairs[DEVICES_MAX];
    char readonly[CLI_READONLY_MAX];
    struct knob_options options = cli_knob_options(turning.knobs->call, program_name, readonly);

    if (knob_repair_is_due(&options))
        knob_repair(&options, turning.knobs->devices, false, repairs, DEVICES_MAX, NULL);
    for (size_t i = 0; i < turning.count; i++)
        turning_of(i)->after_w = limit_w(turning.gpus[i]);
}

int selftest_knobs_run(const struct selftest_knobs *knobs, struct fly_error *out_error)
{
    int code = 0;

    turning = (struct turning){.knobs = knobs};
    list_gpus();
    if (turning.count > 0 && open_knobs()) {
        cli_note(knobs->call, "turning power limits, %d of each GPU; what stood before is put back",
                 SELFTEST_LEVELS);
        code = load_and_measure(out_error);
    }
    close_knobs();
    if (code == 0 && any_tried()) {
        cli_note(knobs->call, "killing a process that holds limits down");
        selftest_kill(knobs->call, knobs->devices, knobs->results, knobs->stop);
    }
    end();
    for (size_t i = 0; i < turning.count; i++) {
        if (!turning_of(i)->tried)
            cli_warn(knobs->call, "the power limit of GPU %u is not turned: %s", turning.gpus[i]->info.index,
                     turning_of(i)->why_not);
    }
    return code;
}

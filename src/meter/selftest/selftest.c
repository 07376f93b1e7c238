/* SPDX-License-Identifier: Apache-2.0 */
/* Times, polls and measures; selftest_findings.c says what the figures mean. */
#include "meter/selftest/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/math/order.h"
#include "meter/meter.h"

/* ---- spreads and updates ---- */

static double quantile(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return sorted[rank > 0 ? rank - 1 : 0];
}

struct spread spread_of(double *values, size_t count)
{
    if (count == 0)
        return (struct spread){0, NAN, NAN, NAN, NAN};
    qsort(values, count, sizeof *values, order_doubles);
    return (struct spread){count, values[0], quantile(values, count, 0.5), quantile(values, count, 0.99),
                           values[count - 1]};
}

/* If at least this share of polls shows a change, the updates may have been faster than the polls. */
static const double share_of_polls = 0.5;

void updates_init(struct updates *updates, double *periods_s, size_t capacity)
{
    *updates = (struct updates){.periods_s = periods_s, .capacity = capacity};
}

void updates_add(struct updates *updates, struct mono_time when, int64_t value)
{
    if (updates->polls++ == 0)
        updates->first = when;
    else if (value != updates->value) {
        /* The first change ends a period whose start was not seen. */
        if (updates->changes++ > 0 && updates->count < updates->capacity)
            updates->periods_s[updates->count++] = mono_elapsed_s(updates->changed, when);
        updates->changed = when;
    }
    updates->value = value;
    updates->last = when;
}

struct update_finding updates_find(struct updates *updates)
{
    struct update_finding finding = {.polls = updates->polls, .changes = updates->changes, .poll_s = NAN};

    if (updates->polls > 1)
        finding.poll_s = mono_elapsed_s(updates->first, updates->last) / (double)(updates->polls - 1);
    finding.period_s = spread_of(updates->periods_s, updates->count);
    finding.at_most =
        updates->count > 0 && (double)updates->changes > share_of_polls * (double)updates->polls;
    return finding;
}

/* ---- calls ---- */

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

/* ---- what stages and levels share ---- */

/* State of one device in one stage, or at one level. */
struct watch {
    struct updates updates[SELFTEST_WATCHED];
    double periods_s[SELFTEST_WATCHED][PERIODS_MAX];
    double utilization_sum;
    size_t utilization_count;
    bool seen, above;       /* a reading was made; the last reading was above the limit */
    struct mono_time under; /* when the first of the latest readings under the limit was made */
    double power_sum_w;     /* sum in the window */
    size_t power_count;
    double clock_sum; /* sum in the window */
    size_t clock_count;
    bool work_known;
    double work; /* at the begin of the window */
};

/* A stage, or a run through the levels. */
struct run {
    const struct selftest_options *options;
    const struct clock *clock;
    struct selftest_result *results;
    struct fly_meter *meter;
    struct watch *watches; /* one for each device */
    void (*poll)(struct run *run, size_t device);
    int level;
    bool in_window; /* of a level */
    struct mono_time set;
};

static struct mono_time now_of(const struct run *run)
{
    return run->clock->now(run->clock->state);
}

static void note_sample(const struct run *run, size_t device)
{
    struct device_reading sample;
    const struct reading *utilization = &sample.values[QUANTITY_UTILIZATION];

    if (!meter_latest(run->meter, device, &sample) || utilization->state != READING_OK)
        return;
    run->watches[device].utilization_sum += (double)utilization->value / 100.0;
    run->watches[device].utilization_count++;
}

/* Polls for a while, and lets the meter sample whenever a sample is due. */
static int poll_for(struct run *run, double duration_s, struct fly_error *out_error)
{
    const struct selftest_options *options = run->options;
    struct mono_time now = now_of(run), end = mono_after_s(now, duration_s);

    while (now.ns < end.ns) {
        struct mono_time next = mono_after_s(now, options->poll_s);

        if (options->go_on != NULL && !options->go_on(options->data))
            return error_set(out_error, FLY_ESTATE, "the test was interrupted; let it run to its end");
        if (now.ns >= meter_next_sample(run->meter).ns) {
            meter_sample(run->meter);
            for (size_t i = 0; i < options->devices->count; i++)
                note_sample(run, i);
        }
        for (size_t i = 0; i < options->devices->count; i++)
            run->poll(run, i);
        run->clock->sleep_until(run->clock->state, next);
        now = now_of(run);
    }
    return 0;
}

static int open_run(struct run *run, const struct selftest_options *options, struct selftest_result *results,
                    struct fly_error *out_error)
{
    struct meter_parts parts = {.devices = options->devices, .clock = options->clock, .threadless = true};
    int code;

    run->options = options;
    run->clock = options->clock != NULL ? options->clock : &clock_real;
    run->results = results;
    run->watches = calloc(options->devices->count + 1, sizeof *run->watches);
    if (run->watches == NULL)
        return error_no_memory(out_error);
    code = meter_new(&parts, &run->meter, out_error);
    if (code < 0)
        free(run->watches);
    return code;
}

static void close_run(struct run *run)
{
    fly_meter_close(run->meter);
    free(run->watches);
}

/* ---- stages ---- */

/* Reads each quantity in a call of its own, so that its moment is known as exactly as possible. */
static void poll_updates(struct run *run, size_t device)
{
    const struct device *polled = &run->options->devices->devices[device];
    struct watch *watch = &run->watches[device];

    for (int i = 0; i < SELFTEST_WATCHED; i++) {
        enum quantity quantity = selftest_watched[i];
        struct device_reading reading;

        device_read(polled, run->clock, QUANTITY_BIT(quantity), &reading);
        if (reading.values[quantity].state == READING_OK)
            updates_add(&watch->updates[i], reading.after, reading.values[quantity].value);
        if (quantity == QUANTITY_ENERGY)
            meter_add(run->meter, device, &reading);
    }
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

int selftest_measure(const struct selftest_options *options, enum selftest_stage which,
                     struct selftest_result *results, struct fly_error *out_error)
{
    static struct fly_device_energy energies[DEVICES_MAX]; /* static, because it is large */
    struct fly_measurement measurement = {
        .size = sizeof measurement, .devices = energies, .device_capacity = DEVICES_MAX};
    struct run run = {.poll = poll_updates};
    fly_window window;
    int code = open_run(&run, options, results, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < options->devices->count * SELFTEST_WATCHED; i++)
        updates_init(&run.watches[i / SELFTEST_WATCHED].updates[i % SELFTEST_WATCHED],
                     run.watches[i / SELFTEST_WATCHED].periods_s[i % SELFTEST_WATCHED], PERIODS_MAX);
    code = fly_meter_begin(run.meter, selftest_stage_name(which), &window, out_error);
    if (code == 0)
        code = poll_for(&run, options->duration_s, out_error);
    if (code == 0)
        code = fly_meter_end(run.meter, window, &measurement, out_error);
    for (size_t i = 0; code == 0 && i < options->devices->count; i++) {
        results[i].windows[which] = window_of(&energies[i], &run.watches[i]);
        meter_counter(run.meter, i, &results[i].windows[which].counter);
    }
    close_run(&run);
    return code;
}

/* ---- levels ---- */

double selftest_kept_w(double limit_w)
{
    return limit_w + fmax(0.03 * limit_w, 5);
}

static double read_limit_w(const struct run *run, size_t device)
{
    struct device_reading reading;
    const struct reading *limit = &reading.values[QUANTITY_POWER_LIMIT];

    device_read(&run->options->devices->devices[device], run->clock, QUANTITY_BIT(QUANTITY_POWER_LIMIT),
                &reading);
    return limit->state == READING_OK ? (double)limit->value * 1e-3 : NAN;
}

/* Compares the power with the limit once, and reads the clock. */
static void poll_limit(struct run *run, size_t device)
{
    static const quantity_set wanted = QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                                       QUANTITY_BIT(QUANTITY_POWER_AVERAGE) |
                                       QUANTITY_BIT(QUANTITY_CLOCK_GPU);
    const struct selftest_turning *turning = &run->results[device].turning;
    struct watch *watch = &run->watches[device];
    struct device_reading reading;
    const struct reading *power = &reading.values[QUANTITY_POWER_INSTANT];
    const struct reading *clock = &reading.values[QUANTITY_CLOCK_GPU];

    if (!turning->tried)
        return;
    device_read(&run->options->devices->devices[device], run->clock, wanted, &reading);
    if (power->state != READING_OK)
        power = &reading.values[QUANTITY_POWER_AVERAGE];
    if (power->state == READING_OK) {
        bool above = (double)power->value * 1e-3 > selftest_kept_w(turning->levels[run->level].limit_w);

        if (!above && (watch->above || !watch->seen))
            watch->under = reading.after;
        watch->above = above;
        watch->seen = true;
        watch->power_sum_w += run->in_window ? (double)power->value * 1e-3 : 0;
        watch->power_count += run->in_window ? 1 : 0;
    }
    if (run->in_window && clock->state == READING_OK) {
        watch->clock_sum += (double)clock->value;
        watch->clock_count++;
    }
}

static void conclude(const struct run *run, size_t device, const struct fly_device_energy *energy)
{
    const struct selftest_options *options = run->options;
    const struct watch *watch = &run->watches[device];
    struct selftest_level *measured = &run->results[device].turning.levels[run->level];
    double work;

    measured->mean_power_w = energy->mean_power_w;
    measured->uncertainty_w = energy->uncertainty_j / energy->time_s;
    measured->capped_share = energy->capped_share;
    if (watch->seen && !watch->above)
        measured->settled_s = mono_elapsed_s(run->set, watch->under);
    if (watch->power_count > 0)
        measured->mean_reading_w = watch->power_sum_w / (double)watch->power_count;
    if (watch->clock_count > 0)
        measured->clock_mhz = watch->clock_sum / (double)watch->clock_count;
    if (watch->work_known && options->work(options->data, device, &work))
        measured->work_per_s = (work - watch->work) / energy->time_s;
}

static int set_level(struct run *run, struct fly_error *out_error)
{
    const struct selftest_options *options = run->options;
    int code;

    run->set = now_of(run);
    code = options->set(options->data, run->level, out_error);
    for (size_t i = 0; i < options->devices->count && code == 0; i++) {
        memset(&run->watches[i], 0, sizeof run->watches[i]);
        if (run->results[i].turning.tried)
            run->results[i].turning.levels[run->level] =
                (struct selftest_level){read_limit_w(run, i), NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    }
    return code;
}

static int measure_level(struct run *run, struct fly_error *out_error)
{
    static struct fly_device_energy energies[DEVICES_MAX]; /* static, because it is large */
    const struct selftest_options *options = run->options;
    struct fly_measurement measurement = {
        .size = sizeof measurement, .devices = energies, .device_capacity = DEVICES_MAX};
    fly_window window = 0;
    int code = set_level(run, out_error);

    run->in_window = false;
    if (code == 0)
        code = poll_for(run, options->settle_s, out_error);
    if (code == 0)
        code = fly_meter_begin(run->meter, "level", &window, out_error);
    if (code < 0)
        return code;
    for (size_t i = 0; i < options->devices->count; i++)
        run->watches[i].work_known =
            options->work != NULL && options->work(options->data, i, &run->watches[i].work);
    run->in_window = true;
    code = poll_for(run, options->duration_s, out_error);
    if (code == 0)
        code = fly_meter_end(run->meter, window, &measurement, out_error);
    for (size_t i = 0; i < options->devices->count && code == 0; i++) {
        if (run->results[i].turning.tried)
            conclude(run, i, &energies[i]);
    }
    return code;
}

int selftest_turn(const struct selftest_options *options, struct selftest_result *results,
                  struct fly_error *out_error)
{
    struct run run = {.poll = poll_limit};
    int code = open_run(&run, options, results, out_error);

    if (code < 0)
        return code;
    for (run.level = 0; run.level < SELFTEST_LEVELS && code == 0; run.level++)
        code = measure_level(&run, out_error);
    close_run(&run);
    return code;
}

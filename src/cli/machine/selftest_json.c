/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test's report as JSON. An unknown figure is null, with the reason beside it. */
#include "cli/machine/selftest_report.h"

#include <math.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include <flyball/version.h>

#include "shapes/shape_told.h"

enum { DATE_MAX = 32, SECOND_NS = 1000000000 };

/* The table of sensors has 0 for what it does not know. */
static double known_above_0(double value)
{
    return value > 0 ? value : NAN;
}

/* ---- facts and latencies ---- */

static const char not_in_table[] = "the table does not know it", not_called[] = "it was not called";

static const struct shape_field sensor_rows[] = {
    {SHAPE_AT(sensor_facts, counter_period_s), TOLD_NUMBER, TOLD_ELSE(not_in_table)},
    {SHAPE_AT(sensor_facts, power_period_s), TOLD_NUMBER, TOLD_ELSE(not_in_table)},
    {SHAPE_AT(sensor_facts, power_window_s), TOLD_NUMBER, TOLD_ELSE(not_in_table)},
    {SHAPE_AT(sensor_facts, counter_from_power), TOLD_BOOL},
    {SHAPE_AT(sensor_facts, gain_error), TOLD_NUMBER, TOLD_ELSE(not_in_table)},
    {SHAPE_AT(sensor_facts, source), TOLD_TEXT},
};
static const struct shape sensor_shape = {SHAPE_OF(sensor_facts, sensor_rows)};

static struct sensor_facts told_sensor(const struct sensor_facts *facts)
{
    struct sensor_facts told = *facts;

    told.counter_period_s = known_above_0(facts->counter_period_s);
    told.power_period_s = known_above_0(facts->power_period_s);
    told.power_window_s = known_above_0(facts->power_window_s);
    told.gain_error = known_above_0(facts->gain_error);
    return told;
}

struct told_latency {
    const char *quantity, *state;
    int code;
    struct spread seconds;
};

#define TOLD_US(title, member) \
    SHAPE_AT_AS(title, told_latency, seconds.member), TOLD_TIMES(1e6), TOLD_ELSE(not_called)
static const struct shape_field latency_rows[] = {
    {SHAPE_AT(told_latency, quantity), TOLD_ANY_TEXT},
    {SHAPE_AT(told_latency, state), TOLD_ANY_TEXT},
    {SHAPE_AT(told_latency, code), .kind = SHAPE_I32, .least = (uint64_t)INT32_MIN, .most = INT32_MAX},
    {SHAPE_AT_AS("calls", told_latency, seconds.count), TOLD_SIZE},
    {TOLD_US("lowest_us", lowest)},
    {TOLD_US("median_us", median)},
    {TOLD_US("p99_us", p99)},
    {TOLD_US("highest_us", highest)},
};
static const struct shape latency_shape = {SHAPE_OF(told_latency, latency_rows)};

static struct told_latency told_latency(enum quantity quantity, const struct selftest_latency *latency)
{
    return (struct told_latency){quantity_facts[quantity].key, reading_state_word(latency->reading.state),
                                 latency->reading.code, latency->seconds};
}

/* ---- windows ---- */

static const char *no_period(const struct update_finding *updates)
{
    if (updates->polls == 0)
        return "the device does not offer the reading";
    return updates->changes == 0 ? "the value never changed, which hides updates"
                                 : "the value changed too seldom to tell";
}

struct told_updates {
    const char *quantity;
    struct update_finding found;
    const char *no_period; /* why the periods are not known */
};

#define TOLD_PERIOD(title, member) \
    SHAPE_AT_AS(title, told_updates, found.member), TOLD_NUMBER, TOLD_ELSE_AT(told_updates, no_period)
static const struct shape_field updates_rows[] = {
    {SHAPE_AT_AS("polls", told_updates, found.polls), TOLD_SIZE},
    {SHAPE_AT_AS("changes", told_updates, found.changes), TOLD_SIZE},
    {TOLD_PERIOD("poll_s", poll_s)},
    {TOLD_PERIOD("period_s", period_s.median)},
    {TOLD_PERIOD("shortest_s", period_s.lowest)},
    {TOLD_PERIOD("p99_s", period_s.p99)},
    {TOLD_PERIOD("longest_s", period_s.highest)},
    {SHAPE_AT_AS("at_most", told_updates, found.at_most), TOLD_BOOL},
};
static const struct shape updates_shape = {SHAPE_OF(told_updates, updates_rows)};

/* By the names of the quantities. */
struct told_watched {
    struct told_updates of[SELFTEST_WATCHED];
    size_t count;
};

static const struct shape_field entry_rows[] = {
    {SHAPE_AT(told_updates, quantity), TOLD_ANY_TEXT},
    {.name = "updates", SHAPE_IS_STRUCT(&updates_shape)},
};
static const struct shape entry_shape = {SHAPE_OF(told_updates, entry_rows)};

static const struct shape_field watched_rows[] = {
    {.kind = SHAPE_REST,
     .shape = &entry_shape,
     .longest = SELFTEST_WATCHED,
     .beside = offsetof(struct told_watched, count)},
};
static const struct shape watched_shape = {SHAPE_OF(told_watched, watched_rows)};

struct told_window {
    const char *stage, *under, *load_note;
    const struct selftest_window *figures;
    const char *no_figure; /* why the meter has none */
    struct told_watched updates;
};

static const char not_offered[] = "the device does not offer it";
static const char no_power[] = "the device does not offer power readings";

static const struct shape_field figures_rows[] = {
    {SHAPE_AT(selftest_window, time_s), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, counter_j), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, counter_uncertainty_j), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, integral_j), TOLD_NUMBER, TOLD_ELSE(no_power)},
    {SHAPE_AT(selftest_window, integral_excess), TOLD_NUMBER, TOLD_ELSE("one of the two is not known")},
    {SHAPE_AT(selftest_window, mean_power_w), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, utilization), TOLD_NUMBER, TOLD_ELSE(not_offered)},
    {SHAPE_AT(selftest_window, temperature_max_c), TOLD_NUMBER, TOLD_ELSE(not_offered)},
};
static const struct shape figures_shape = {SHAPE_OF(selftest_window, figures_rows)};

static const struct shape_field note_rows[] = {
    {SHAPE_AT(selftest_window, note), TOLD_CHARS(selftest_window, note)},
};
static const struct shape note_shape = {SHAPE_OF(selftest_window, note_rows)};

static const struct shape_field window_rows[] = {
    {SHAPE_AT(told_window, stage), TOLD_ANY_TEXT},
    {SHAPE_AT(told_window, under), TOLD_ANY_TEXT},
    {SHAPE_AT(told_window, load_note), TOLD_TEXT},
    {SHAPE_AT(told_window, figures), TOLD_MERGED(&figures_shape), TOLD_ELSE_AT(told_window, no_figure)},
    {SHAPE_AT_AS("note", told_window, figures), TOLD_MERGED(&note_shape)},
    {SHAPE_AT(told_window, updates), SHAPE_IS_STRUCT(&watched_shape)},
};
static const struct shape window_shape = {SHAPE_OF(told_window, window_rows)};

static struct told_window told_window(enum selftest_stage stage, const struct selftest_window *window,
                                      const struct selftest_load *load)
{
    bool ours = stage == SELFTEST_LOADED && load->started;
    struct told_window told = {
        .stage = selftest_stage_name(stage),
        .under = ours ? "cuda_kernel" : "whatever_ran",
        .load_note = stage == SELFTEST_LOADED ? load->text : NULL,
        .figures = window,
        .no_figure = window->note[0] != '\0' ? window->note : not_offered,
        .updates = {.count = SELFTEST_WATCHED},
    };

    for (int i = 0; i < SELFTEST_WATCHED; i++)
        told.updates.of[i] = (struct told_updates){quantity_facts[selftest_watched[i]].key,
                                                   window->updates[i], no_period(&window->updates[i])};
    return told;
}

/* ---- limits that were set ---- */

static const char no_energy[] = "the device's energy is not known";

static const struct shape_field level_rows[] = {
    {SHAPE_AT_AS("power_limit_w", selftest_level, limit_w), TOLD_NUMBER,
     TOLD_ELSE("the driver does not say what it set")},
    {SHAPE_AT(selftest_level, mean_power_w), TOLD_NUMBER, TOLD_ELSE(no_energy)},
    {SHAPE_AT_AS("mean_power_uncertainty_w", selftest_level, uncertainty_w), TOLD_NUMBER,
     TOLD_ELSE(no_energy)},
    {SHAPE_AT(selftest_level, mean_reading_w), TOLD_NUMBER, TOLD_ELSE(no_power)},
    {SHAPE_AT(selftest_level, settled_s), TOLD_NUMBER,
     TOLD_ELSE("the readings did not stay under the limit")},
    {SHAPE_AT_AS("clock_gpu_mhz", selftest_level, clock_mhz), TOLD_NUMBER, TOLD_ELSE(not_offered)},
    {SHAPE_AT(selftest_level, work_per_s), TOLD_NUMBER,
     TOLD_ELSE("no load of the test's own ran throughout")},
    {SHAPE_AT(selftest_level, capped_share), TOLD_NUMBER, TOLD_ELSE(not_offered)},
};
static const struct shape level_shape = {SHAPE_OF(selftest_level, level_rows)};

struct told_turning {
    bool tried;
    const char *why_not; /* NULL: it was tried */
    const struct selftest_level *levels;
    size_t level_count;
    double killed_at_limit_w, back_s, power_limit_before_w, power_limit_after_w;
    const char *not_killed, *not_back; /* why the first two are not known */
};

static const char driver_silent[] = "the driver does not say";
static const struct shape_field turning_rows[] = {
    {SHAPE_AT(told_turning, tried), TOLD_BOOL},
    {SHAPE_AT(told_turning, why_not), TOLD_ANY_TEXT, .null = SHAPE_OR_NULL,
     TOLD_ELSE("the limit may be turned")},
    {SHAPE_AT(told_turning, levels),
     SHAPE_IS_STRUCTS(&level_shape, SELFTEST_LEVELS, told_turning, level_count)},
    {SHAPE_AT(told_turning, killed_at_limit_w), TOLD_NUMBER, TOLD_ELSE_AT(told_turning, not_killed)},
    {SHAPE_AT(told_turning, back_s), TOLD_NUMBER, TOLD_ELSE_AT(told_turning, not_back)},
    {SHAPE_AT(told_turning, power_limit_before_w), TOLD_NUMBER, TOLD_ELSE(driver_silent)},
    {SHAPE_AT(told_turning, power_limit_after_w), TOLD_NUMBER, TOLD_ELSE(driver_silent)},
};
static const struct shape turning_shape = {SHAPE_OF(told_turning, turning_rows)};

/* ---- devices ---- */

static json_t *outcome_of(const void *from)
{
    return json_string(selftest_outcome_word(((const struct selftest_finding *)from)->outcome));
}

static const struct shape_field finding_rows[] = {
    {SHAPE_AT(selftest_finding, check), TOLD_ANY_TEXT},
    {.name = "outcome", TOLD_MADE(outcome_of)},
    {SHAPE_AT(selftest_finding, text), TOLD_ANY_CHARS(selftest_finding, text)},
};
static const struct shape finding_shape = {SHAPE_OF(selftest_finding, finding_rows)};

static json_t *kind_of(const void *from)
{
    return json_string(device_kind_name(((const struct device_info *)from)->kind));
}

static const struct shape_field name_rows[] = {
    {.name = "kind", TOLD_MADE(kind_of)},
    {SHAPE_AT(device_info, index), TOLD_U32},
    {SHAPE_AT(device_info, name), TOLD_CHARS(device_info, name)},
    {SHAPE_AT(device_info, driver), TOLD_CHARS(device_info, driver)},
};
static const struct shape name_shape = {SHAPE_OF(device_info, name_rows)};

static const struct shape_field nature_rows[] = {
    {SHAPE_AT(device_info, emulated), TOLD_BOOL},
    {SHAPE_AT(device_info, estimated), TOLD_BOOL},
    {SHAPE_AT(device_info, module_power), TOLD_BOOL},
    {SHAPE_AT(device_info, mig), TOLD_BOOL},
    {SHAPE_AT(device_info, note), TOLD_CHARS(device_info, note)},
};
static const struct shape nature_shape = {SHAPE_OF(device_info, nature_rows)};

struct told_device {
    const struct device_info *info;
    const char *backend;
    struct sensor_facts sensor;
    struct told_latency latencies[QUANTITY_COUNT];
    struct told_window windows[SELFTEST_STAGE_COUNT]; /* those that were measured */
    const struct selftest_turning *turning;           /* NULL: its limits were not to be tested */
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t latency_count, window_count, finding_count;
};

static json_t *turning_of(const void *from)
{
    const struct selftest_turning *turning = ((const struct told_device *)from)->turning;
    const char *not_killed = turning->not_killed[0] != '\0' ? turning->not_killed : "no process was killed";
    const struct told_turning told = {
        .tried = turning->tried,
        .why_not = turning->tried ? NULL : turning->why_not,
        .levels = turning->levels,
        .level_count = turning->tried ? SELFTEST_LEVELS : 0,
        .killed_at_limit_w = turning->killed ? turning->killed_limit_w : NAN,
        .back_s = turning->killed ? turning->back_s : NAN,
        .power_limit_before_w = turning->before_w,
        .power_limit_after_w = turning->after_w,
        .not_killed = not_killed,
        .not_back = turning->killed ? "the limit did not come back" : not_killed,
    };

    return shape_tell(&turning_shape, &told);
}

static const struct shape_field device_rows[] = {
    {SHAPE_AT(told_device, info), TOLD_MERGED(&name_shape)},
    {SHAPE_AT(told_device, backend), TOLD_TEXT},
    {SHAPE_AT(told_device, info), TOLD_MERGED(&nature_shape)},
    {SHAPE_AT(told_device, sensor), SHAPE_IS_STRUCT(&sensor_shape)},
    {SHAPE_AT(told_device, latencies),
     SHAPE_IS_STRUCTS_HERE(&latency_shape, told_device, latencies, latency_count)},
    {SHAPE_AT(told_device, windows),
     SHAPE_IS_STRUCTS_HERE(&window_shape, told_device, windows, window_count)},
    {SHAPE_AT(told_device, turning), TOLD_MADE(turning_of), .need = SHAPE_SPARING},
    {SHAPE_AT(told_device, findings),
     SHAPE_IS_STRUCTS_HERE(&finding_shape, told_device, findings, finding_count)},
};
static const struct shape device_shape = {SHAPE_OF(told_device, device_rows)};

static void put_device(const struct selftest_report *report, size_t index, struct told_device *out)
{
    const struct device *device = &report->devices->devices[index];
    const struct selftest_result *result = &report->results[index];

    out->info = &device->info;
    out->backend = device->backend->name;
    out->sensor = told_sensor(&device->info.sensor);
    out->turning = result->turning.wanted ? &result->turning : NULL;
    out->finding_count = selftest_findings(&device->info, result, out->findings);
    for (int i = 0; i < QUANTITY_COUNT; i++)
        out->latencies[out->latency_count++] = told_latency((enum quantity)i, &result->latencies[i]);
    for (int i = 0; i < SELFTEST_STAGE_COUNT; i++) {
        if (result->windows[i].measured)
            out->windows[out->window_count++] =
                told_window((enum selftest_stage)i, &result->windows[i], &report->loads[index]);
    }
}

static bool any_emulated(const struct device_list *devices)
{
    bool emulated = false;

    for (size_t i = 0; i < devices->count; i++)
        emulated = emulated || devices->devices[i].info.emulated;
    return emulated;
}

/* ---- all of it ---- */

struct told_selftest {
    const char *schema, *flyball;
    char date[DATE_MAX];
    bool named;
    const char *kernel, *machine; /* where the system has names */
    bool emulated;
    double duration_s;
    struct told_device *devices;
    size_t device_count;
};

static const struct shape_field selftest_rows[] = {
    {SHAPE_AT(told_selftest, schema), TOLD_ANY_TEXT},
    {SHAPE_AT(told_selftest, flyball), TOLD_ANY_TEXT},
    {SHAPE_AT(told_selftest, date), TOLD_CHARS(told_selftest, date)},
    {SHAPE_AT(told_selftest, kernel), TOLD_ANY_TEXT, SHAPE_IF(told_selftest, named)},
    {SHAPE_AT(told_selftest, machine), TOLD_ANY_TEXT, SHAPE_IF(told_selftest, named)},
    {SHAPE_AT(told_selftest, emulated), TOLD_BOOL},
    {SHAPE_AT(told_selftest, duration_s), TOLD_NUMBER},
    {SHAPE_AT(told_selftest, devices),
     SHAPE_IS_STRUCTS(&device_shape, DEVICES_MAX, told_selftest, device_count)},
};
static const struct shape selftest_shape = {SHAPE_OF(told_selftest, selftest_rows)};

json_t *selftest_report_json(const struct selftest_report *report)
{
    time_t seconds = (time_t)(report->date.ns / SECOND_NS);
    size_t count = report->devices->count;
    struct utsname system;
    struct told_selftest told = {
        .schema = "flyball.selftest/1",
        .flyball = fly_version(),
        .named = uname(&system) == 0,
        .kernel = system.release,
        .machine = system.machine,
        .emulated = any_emulated(report->devices),
        .duration_s = report->duration_s,
        .devices = calloc(count + 1, sizeof *told.devices),
        .device_count = count,
    };
    struct tm utc;
    json_t *document;

    if (told.devices == NULL)
        return NULL;
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(told.date, sizeof told.date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    for (size_t i = 0; i < count; i++)
        put_device(report, i, &told.devices[i]);
    document = shape_tell(&selftest_shape, &told);
    free(told.devices);
    return document;
}

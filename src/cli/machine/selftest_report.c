/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test's report: as JSON, where an unknown figure is null with the reason beside it, and as tables
 * and sentences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include <flyball/version.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/machine/selftest_cli.h"
#include "device/device_meanings.h"
#include "shapes/shape_told.h"

enum { DATE_MAX = 32, SECOND_NS = 1000000000 };

/* The table of sensors has 0 for what it does not know. */
static double known_above_0(double value)
{
    return value > 0 ? value : NAN;
}

/* ---- facts and latencies ---- */

static const char not_in_table[] = "the table does not know it", not_called[] = "it was not called";
static const char not_offered[] = "the device does not offer it", not_both[] = "one of the two is not known";
static const char no_power[] = "the device does not offer power readings";
static const char no_energy[] = "the device's energy is not known";
static const char not_said[] = "the driver does not say what it set";
static const char not_settled[] = "the readings did not stay under the limit";
static const char no_work[] = "no load of the test's own ran throughout";

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

static const struct shape_field figures_rows[] = {
    {SHAPE_AT(selftest_window, time_s), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, counter_j), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, counter_uncertainty_j), TOLD_NUMBER},
    {SHAPE_AT(selftest_window, integral_j), TOLD_NUMBER, TOLD_ELSE(no_power)},
    {SHAPE_AT(selftest_window, integral_excess), TOLD_NUMBER, TOLD_ELSE(not_both)},
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

static const struct shape_field level_rows[] = {
    {SHAPE_AT_AS("power_limit_w", selftest_level, limit_w), TOLD_NUMBER, TOLD_ELSE(not_said)},
    {SHAPE_AT(selftest_level, mean_power_w), TOLD_NUMBER, TOLD_ELSE(no_energy)},
    {SHAPE_AT_AS("mean_power_uncertainty_w", selftest_level, uncertainty_w), TOLD_NUMBER,
     TOLD_ELSE(no_energy)},
    {SHAPE_AT(selftest_level, mean_reading_w), TOLD_NUMBER, TOLD_ELSE(no_power)},
    {SHAPE_AT(selftest_level, settled_s), TOLD_NUMBER, TOLD_ELSE(not_settled)},
    {SHAPE_AT_AS("clock_gpu_mhz", selftest_level, clock_mhz), TOLD_NUMBER, TOLD_ELSE(not_offered)},
    {SHAPE_AT(selftest_level, work_per_s), TOLD_NUMBER, TOLD_ELSE(no_work)},
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

static void put_device(const struct selftest *test, size_t index, struct told_device *out)
{
    const struct device *device = &test->devices.devices[index];
    const struct selftest_result *result = &test->results[index];

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
                told_window((enum selftest_stage)i, &result->windows[i], &test->loads[index]);
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

json_t *selftest_report_json(const struct selftest *test)
{
    time_t seconds = (time_t)(test->date.ns / SECOND_NS);
    size_t count = test->devices.count;
    struct utsname system;
    struct told_selftest told = {
        .schema = "flyball.selftest/1",
        .flyball = fly_version(),
        .named = uname(&system) == 0,
        .kernel = system.release,
        .machine = system.machine,
        .emulated = any_emulated(&test->devices),
        .duration_s = test->duration_s,
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
        put_device(test, i, &told.devices[i]);
    document = shape_tell(&selftest_shape, &told);
    free(told.devices);
    return document;
}

/* ---- for people ---- */

enum { TEXT_MAX = 1 << 20, LABEL_MAX = 32 };

static const char *label(const struct device_info *info, char text[LABEL_MAX])
{
    snprintf(text, LABEL_MAX, "%s %u", device_kind_name(info->kind), info->index);
    return text;
}

/* Adds one device's rows to a table. */
typedef void filler(struct table *table, const struct device_info *info,
                    const struct selftest_result *result);

static const struct meaning call_columns[] = {
    TABLE_SHOWN("device", MEANING_TEXT, 0),      TABLE_SHOWN("reading", MEANING_TEXT, 0),
    TABLE_SHOWN("calls", MEANING_WHOLE, 0),      TABLE_SHOWN("least (us)", MEANING_REAL, 1),
    TABLE_SHOWN("median (us)", MEANING_REAL, 1), TABLE_SHOWN("99 % (us)", MEANING_REAL, 1),
    TABLE_SHOWN("most (us)", MEANING_REAL, 1),
};

/* What the device answers; the rest is in the report for programs. */
static void fill_calls(struct table *table, const struct device_info *info,
                       const struct selftest_result *result)
{
    char name[LABEL_MAX];

    for (int q = 0; q < QUANTITY_COUNT; q++) {
        const struct selftest_latency *latency = &result->latencies[q];

        if (latency->reading.state != READING_OK)
            continue;
        table_add_text(table, label(info, name));
        table_add_text(table, quantity_facts[q].title);
        table_add_integer(table, (int64_t)latency->seconds.count);
        table_add_known(table, 1e6 * latency->seconds.lowest, not_called);
        table_add_known(table, 1e6 * latency->seconds.median, not_called);
        table_add_known(table, 1e6 * latency->seconds.p99, not_called);
        table_add_known(table, 1e6 * latency->seconds.highest, not_called);
    }
}

static const struct meaning update_columns[] = {
    TABLE_SHOWN("device", MEANING_TEXT, 0),      TABLE_SHOWN("stage", MEANING_TEXT, 0),
    TABLE_SHOWN("reading", MEANING_TEXT, 0),     TABLE_SHOWN("polled (ms)", MEANING_REAL, 1),
    TABLE_SHOWN("changes", MEANING_WHOLE, 0),    TABLE_SHOWN("least (ms)", MEANING_REAL, 1),
    TABLE_SHOWN("median (ms)", MEANING_REAL, 1), TABLE_SHOWN("99 % (ms)", MEANING_REAL, 1),
    TABLE_SHOWN("table (ms)", MEANING_REAL, 1),
};

/* How often readings change, for those that the device offers. */
static void fill_updates(struct table *table, const struct device_info *info,
                         const struct selftest_result *result)
{
    char name[LABEL_MAX];

    for (int i = 0; i < SELFTEST_STAGE_COUNT * SELFTEST_WATCHED; i++) {
        int stage = i / SELFTEST_WATCHED, place = i % SELFTEST_WATCHED;
        const struct update_finding *updates = &result->windows[stage].updates[place];
        double assumed_s = place == 0 ? info->sensor.counter_period_s : info->sensor.power_period_s;

        if (!result->windows[stage].measured || updates->polls == 0)
            continue;
        table_add_text(table, label(info, name));
        table_add_text(table, selftest_stage_name((enum selftest_stage)stage));
        table_add_text(table, quantity_facts[selftest_watched[place]].title);
        table_add_known(table, 1e3 * updates->poll_s, "it was polled once");
        table_add_integer(table, (int64_t)updates->changes);
        table_add_known(table, 1e3 * updates->period_s.lowest, no_period(updates));
        table_add_known(table, 1e3 * updates->period_s.median, no_period(updates));
        table_add_known(table, 1e3 * updates->period_s.p99, no_period(updates));
        table_add_known(table, assumed_s > 0 ? 1e3 * assumed_s : NAN, not_in_table);
    }
}

static const struct meaning window_columns[] = {
    TABLE_SHOWN("device", MEANING_TEXT, 0),   TABLE_SHOWN("stage", MEANING_TEXT, 0),
    TABLE_SHOWN("time (s)", MEANING_REAL, 1), TABLE_SHOWN("counter (J)", MEANING_REAL, 1),
    TABLE_SHOWN("+- (J)", MEANING_REAL, 1),   TABLE_SHOWN("integral (J)", MEANING_REAL, 1),
    TABLE_SHOWN("off (%)", MEANING_REAL, 1),  TABLE_SHOWN("power (W)", MEANING_REAL, 1),
    TABLE_SHOWN("use (%)", MEANING_REAL, 0),  TABLE_SHOWN("heat (C)", MEANING_REAL, 0),
};

static void fill_windows(struct table *table, const struct device_info *info,
                         const struct selftest_result *result)
{
    char name[LABEL_MAX];

    for (int s = 0; s < SELFTEST_STAGE_COUNT; s++) {
        const struct selftest_window *window = &result->windows[s];
        const char *reason = window->note[0] != '\0' ? window->note : not_offered;

        if (!window->measured)
            continue;
        table_add_text(table, label(info, name));
        table_add_text(table, selftest_stage_name((enum selftest_stage)s));
        table_add_known(table, window->time_s, reason);
        table_add_known(table, window->counter_j, reason);
        table_add_known(table, window->counter_uncertainty_j, reason);
        table_add_known(table, window->integral_j, no_power);
        table_add_known(table, 100 * window->integral_excess, not_both);
        table_add_known(table, window->mean_power_w, reason);
        table_add_known(table, 100 * window->utilization, not_offered);
        table_add_known(table, window->temperature_max_c, not_offered);
    }
}

static const struct meaning level_columns[] = {
    TABLE_SHOWN("device", MEANING_TEXT, 0),
    TABLE_SHOWN("limit (W)", MEANING_REAL, 0),
    TABLE_SHOWN("power (W)", MEANING_REAL, 1),
    TABLE_SHOWN("+- (W)", MEANING_REAL, 1),
    TABLE_SHOWN("under it after (s)", MEANING_REAL, 3),
    TABLE_SHOWN("clock (MHz)", MEANING_REAL, 0),
    TABLE_SHOWN("work (/us)", MEANING_REAL, 3),
    TABLE_SHOWN("capped (%)", MEANING_REAL, 0),
};

static void fill_levels(struct table *table, const struct device_info *info,
                        const struct selftest_result *result)
{
    char name[LABEL_MAX];

    for (int i = 0; i < SELFTEST_LEVELS && result->turning.tried; i++) {
        const struct selftest_level *level = &result->turning.levels[i];

        table_add_text(table, label(info, name));
        table_add_known(table, level->limit_w, not_said);
        table_add_known(table, level->mean_power_w, no_energy);
        table_add_known(table, level->uncertainty_w, no_energy);
        table_add_known(table, level->settled_s, not_settled);
        table_add_known(table, level->clock_mhz, not_offered);
        table_add_known(table, level->work_per_s / 1e6, no_work);
        table_add_known(table, 100 * level->capped_share, not_offered);
    }
}

static const struct meaning findings_columns[] = {
    DEVICE_KIND,
    DEVICE_INDEX("index"),
    {"check", "check", MEANING_TEXT, 0, NULL, MEANING_FACT, "What was checked."},
    {"outcome", "outcome", MEANING_TEXT, 0, NULL, MEANING_FACT, "What came of it."},
    {"text", "text", MEANING_TEXT, 0, NULL, MEANING_FACT, "The finding, in words."},
};
const struct quantities selftest_quantities = {"a finding of the CSV", QUANTITIES(findings_columns)};

static void fill_findings(struct table *table, const struct device_info *info,
                          const struct selftest_result *result)
{
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count = selftest_findings(info, result, findings);

    for (size_t f = 0; f < count; f++) {
        table_add_text(table, device_kind_name(info->kind));
        table_add_integer(table, info->index);
        table_add_text(table, findings[f].check);
        table_add_text(table, selftest_outcome_word(findings[f].outcome));
        table_add_text(table, findings[f].text);
    }
}

enum { TABLE_CALLS, TABLE_UPDATES, TABLE_WINDOWS, TABLE_LEVELS, TABLE_FINDINGS };
#define COLUMNS(rows) rows, sizeof(rows) / sizeof(rows)[0]
static const struct {
    const char *schema;
    const struct meaning *columns;
    size_t column_count;
    filler *fill;
} tables[] = {
    [TABLE_CALLS] = {"flyball.selftest.calls/1", COLUMNS(call_columns), fill_calls},
    [TABLE_UPDATES] = {"flyball.selftest.updates/1", COLUMNS(update_columns), fill_updates},
    [TABLE_WINDOWS] = {"flyball.selftest.windows/1", COLUMNS(window_columns), fill_windows},
    [TABLE_LEVELS] = {"flyball.selftest.limits/1", COLUMNS(level_columns), fill_levels},
    [TABLE_FINDINGS] = {"flyball.selftest.findings/1", COLUMNS(findings_columns), fill_findings},
};

/* Prints one of the tables, after `before`; levels only if some were tried. */
static int emit(const struct selftest *test, int number, const char *before, struct fly_error *out_error)
{
    struct table *table =
        table_new(tables[number].schema, tables[number].columns, tables[number].column_count);
    int code = 0;

    for (size_t i = 0; i < test->devices.count; i++)
        tables[number].fill(table, &test->devices.devices[i].info, &test->results[i]);
    if (number != TABLE_LEVELS || table_row_count(table) > 0) {
        code = cli_emit_text(test->call, before, out_error);
        if (code == 0)
            code = cli_emit_table(test->call, table, out_error);
    }
    table_free(table);
    return code;
}

static void put_text(struct buffer *text, const struct selftest *test, size_t index)
{
    static const char *const marks[] = {[SELFTEST_AS_EXPECTED] = "as expected",
                                        [SELFTEST_DIFFERS] = "DIFFERS",
                                        [SELFTEST_NOT_KNOWN] = "not known"};
    const struct device_info *info = &test->devices.devices[index].info;
    const struct selftest_load *load = &test->loads[index];
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count = selftest_findings(info, &test->results[index], findings);
    char name[LABEL_MAX];

    buffer_printf(text, "\n%s: %s%s%s%s\n", label(info, name),
                  info->name[0] != '\0' ? info->name : "(nameless)", info->emulated ? " (emulated)" : "",
                  info->driver[0] != '\0' ? ", driver " : "", info->driver);
    if (info->kind == DEVICE_GPU)
        buffer_printf(text, "  loaded by %s%s%s\n", load->started ? "a CUDA kernel" : "whatever ran",
                      load->text[0] != '\0' ? ": " : "", load->text);
    for (size_t i = 0; i < count; i++)
        buffer_printf(text, "  %-12s %s\n", marks[findings[i].outcome], findings[i].text);
}

int selftest_report_text(const struct selftest *test, struct fly_error *out_error)
{
    struct buffer text;
    int code = 0;

    for (int i = TABLE_CALLS; code == 0 && i <= TABLE_LEVELS; i++)
        code = emit(test, i, i == TABLE_CALLS ? "" : "\n", out_error);
    buffer_init(&text, TEXT_MAX);
    for (size_t i = 0; i < test->devices.count; i++)
        put_text(&text, test, i);
    if (code == 0 && text.error < 0)
        code = error_no_memory(out_error);
    if (code == 0)
        code = cli_emit_text(test->call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

int selftest_report_csv(const struct selftest *test, struct fly_error *out_error)
{
    return emit(test, TABLE_FINDINGS, "", out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test's report as JSON. An unknown figure is null, with the reason beside it. */
#include "cli/machine/selftest_report.h"

#include <math.h>
#include <sys/utsname.h>
#include <time.h>

#include <flyball/version.h>

#include "shapes/json_number.h"
#include "shapes/text_value.h"

enum { DATE_MAX = 32, SECOND_NS = 1000000000 };

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void set_text(json_t *object, const char *key, const char *text)
{
    set(object, key, text_or_null(text));
}

static json_t *sensor_json(const struct sensor_facts *sensor)
{
    static const char reason[] = "the table does not know it";
    json_t *object = json_object();

    json_known_set(object, "counter_period_s", sensor->counter_period_s > 0 ? sensor->counter_period_s : NAN,
                   reason);
    json_known_set(object, "power_period_s", sensor->power_period_s > 0 ? sensor->power_period_s : NAN,
                   reason);
    json_known_set(object, "power_window_s", sensor->power_window_s > 0 ? sensor->power_window_s : NAN,
                   reason);
    set(object, "counter_from_power", json_boolean(sensor->counter_from_power));
    json_known_set(object, "gain_error", sensor->gain_error > 0 ? sensor->gain_error : NAN, reason);
    set_text(object, "source", sensor->source);
    return object;
}

static json_t *latency_json(enum quantity quantity, const struct selftest_latency *latency)
{
    static const char reason[] = "it was not called";
    json_t *object = json_object();

    set(object, "quantity", json_string(quantity_facts[quantity].key));
    set(object, "state", json_string(reading_state_word(latency->reading.state)));
    set(object, "code", json_integer(latency->reading.code));
    set(object, "calls", json_integer((json_int_t)latency->seconds.count));
    json_known_set(object, "lowest_us", 1e6 * latency->seconds.lowest, reason);
    json_known_set(object, "median_us", 1e6 * latency->seconds.median, reason);
    json_known_set(object, "p99_us", 1e6 * latency->seconds.p99, reason);
    json_known_set(object, "highest_us", 1e6 * latency->seconds.highest, reason);
    return object;
}

static const char *no_period(const struct update_finding *updates)
{
    if (updates->polls == 0)
        return "the device does not offer the reading";
    return updates->changes == 0 ? "the value never changed, which hides updates"
                                 : "the value changed too seldom to tell";
}

static json_t *updates_json(const struct update_finding *updates)
{
    const char *reason = no_period(updates);
    json_t *object = json_object();

    set(object, "polls", json_integer((json_int_t)updates->polls));
    set(object, "changes", json_integer((json_int_t)updates->changes));
    json_known_set(object, "poll_s", updates->poll_s, reason);
    json_known_set(object, "period_s", updates->period_s.median, reason);
    json_known_set(object, "shortest_s", updates->period_s.lowest, reason);
    json_known_set(object, "p99_s", updates->period_s.p99, reason);
    json_known_set(object, "longest_s", updates->period_s.highest, reason);
    set(object, "at_most", json_boolean(updates->at_most));
    return object;
}

static json_t *window_json(enum selftest_stage stage, const struct selftest_window *window,
                           const struct selftest_load *load)
{
    const char *reason = window->note[0] != '\0' ? window->note : "the device does not offer it";
    json_t *object = json_object(), *updates = json_object();
    bool ours = stage == SELFTEST_LOADED && load->started;

    set(object, "stage", json_string(selftest_stage_name(stage)));
    set(object, "under", json_string(ours ? "cuda_kernel" : "whatever_ran"));
    set_text(object, "load_note", stage == SELFTEST_LOADED ? load->text : NULL);
    json_known_set(object, "time_s", window->time_s, reason);
    json_known_set(object, "counter_j", window->counter_j, reason);
    json_known_set(object, "counter_uncertainty_j", window->counter_uncertainty_j, reason);
    json_known_set(object, "integral_j", window->integral_j, "the device does not offer power readings");
    json_known_set(object, "integral_excess", window->integral_excess, "one of the two is not known");
    json_known_set(object, "mean_power_w", window->mean_power_w, reason);
    json_known_set(object, "utilization", window->utilization, "the device does not offer it");
    json_known_set(object, "temperature_max_c", window->temperature_max_c, "the device does not offer it");
    set_text(object, "note", window->note);
    for (int i = 0; i < SELFTEST_WATCHED; i++)
        set(updates, quantity_facts[selftest_watched[i]].key, updates_json(&window->updates[i]));
    set(object, "updates", updates);
    return object;
}

static json_t *level_json(const struct selftest_level *level)
{
    json_t *object = json_object();

    json_known_set(object, "power_limit_w", level->limit_w, "the driver does not say what it set");
    json_known_set(object, "mean_power_w", level->mean_power_w, "the device's energy is not known");
    json_known_set(object, "mean_power_uncertainty_w", level->uncertainty_w,
                   "the device's energy is not known");
    json_known_set(object, "mean_reading_w", level->mean_reading_w,
                   "the device does not offer power readings");
    json_known_set(object, "settled_s", level->settled_s, "the readings did not stay under the limit");
    json_known_set(object, "clock_gpu_mhz", level->clock_mhz, "the device does not offer it");
    json_known_set(object, "work_per_s", level->work_per_s, "no load of the test's own ran throughout");
    json_known_set(object, "capped_share", level->capped_share, "the device does not offer it");
    return object;
}

static json_t *turning_json(const struct selftest_turning *turning)
{
    const char *not_killed = turning->not_killed[0] != '\0' ? turning->not_killed : "no process was killed";
    json_t *object = json_object(), *levels = json_array();

    set(object, "tried", json_boolean(turning->tried));
    set(object, "why_not", turning->tried ? json_null() : json_string(turning->why_not));
    if (turning->tried)
        set(object, "why_not_unavailable", json_string("the limit may be turned"));
    for (int i = 0; i < SELFTEST_LEVELS && turning->tried; i++)
        json_array_append_new(levels, level_json(&turning->levels[i]));
    set(object, "levels", levels);
    json_known_set(object, "killed_at_limit_w", turning->killed ? turning->killed_limit_w : NAN, not_killed);
    json_known_set(object, "back_s", turning->killed ? turning->back_s : NAN,
                   turning->killed ? "the limit did not come back" : not_killed);
    json_known_set(object, "power_limit_before_w", turning->before_w, "the driver does not say");
    json_known_set(object, "power_limit_after_w", turning->after_w, "the driver does not say");
    return object;
}

static json_t *findings_json(const struct device_info *info, const struct selftest_result *result)
{
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count = selftest_findings(info, result, findings);
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();

        set(object, "check", json_string(findings[i].check));
        set(object, "outcome", json_string(selftest_outcome_word(findings[i].outcome)));
        set(object, "text", json_string(findings[i].text));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *device_json(const struct selftest_report *report, size_t index)
{
    const struct device *device = &report->devices->devices[index];
    const struct selftest_result *result = &report->results[index];
    json_t *object = json_object(), *latencies = json_array(), *windows = json_array();

    set(object, "kind", json_string(device_kind_name(device->info.kind)));
    set(object, "index", json_integer(device->info.index));
    set_text(object, "name", device->info.name);
    set_text(object, "driver", device->info.driver);
    set_text(object, "backend", device->backend->name);
    set(object, "emulated", json_boolean(device->info.emulated));
    set(object, "estimated", json_boolean(device->info.estimated));
    set(object, "module_power", json_boolean(device->info.module_power));
    set(object, "mig", json_boolean(device->info.mig));
    set_text(object, "note", device->info.note);
    set(object, "sensor", sensor_json(&device->info.sensor));
    for (int i = 0; i < QUANTITY_COUNT; i++)
        json_array_append_new(latencies, latency_json((enum quantity)i, &result->latencies[i]));
    set(object, "latencies", latencies);
    for (int i = 0; i < SELFTEST_STAGE_COUNT; i++) {
        if (result->windows[i].measured)
            json_array_append_new(
                windows, window_json((enum selftest_stage)i, &result->windows[i], &report->loads[index]));
    }
    set(object, "windows", windows);
    if (result->turning.wanted)
        set(object, "turning", turning_json(&result->turning));
    set(object, "findings", findings_json(&device->info, result));
    return object;
}

static bool any_emulated(const struct device_list *devices)
{
    bool emulated = false;

    for (size_t i = 0; i < devices->count; i++)
        emulated = emulated || devices->devices[i].info.emulated;
    return emulated;
}

json_t *selftest_report_json(const struct selftest_report *report)
{
    json_t *document = json_object(), *devices = json_array();
    time_t seconds = (time_t)(report->date.ns / SECOND_NS);
    char date[DATE_MAX] = "";
    struct utsname system;
    struct tm utc;

    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    set(document, "schema", json_string("flyball.selftest/1"));
    set(document, "flyball", json_string(fly_version()));
    set_text(document, "date", date);
    if (uname(&system) == 0) {
        set(document, "kernel", json_string(system.release));
        set(document, "machine", json_string(system.machine));
    }
    set(document, "emulated", json_boolean(any_emulated(report->devices)));
    set(document, "duration_s", json_real(report->duration_s));
    for (size_t i = 0; i < report->devices->count; i++)
        json_array_append_new(devices, device_json(report, i));
    set(document, "devices", devices);
    return document;
}

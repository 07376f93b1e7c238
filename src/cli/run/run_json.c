/* SPDX-License-Identifier: Apache-2.0 */
/* The report on a run for programs; tables of members, so that what is unknown has its reason everywhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/run_carbon.h"
#include "cli/run/run_job.h"
#include "cli/run/run_result.h"
#include "cli/run/run_tune.h"
#include "meter/device_figures.h"
#include "shapes/text_value.h"

enum { KEY_MAX = 64 };

static const char schema[] = "flyball.run/1";
static const char not_said[] = "the device does not say";

/* Sets a member to null and "<key>_unavailable" to the reason. */
static void set_unavailable(json_t *object, const char *key, const char *reason)
{
    char reason_key[KEY_MAX];

    snprintf(reason_key, sizeof reason_key, "%s_unavailable", key);
    json_object_set_new(object, key, json_null());
    json_object_set_new(object, reason_key, text_value(reason));
}

static void set_real(json_t *object, const char *key, double value, const char *reason)
{
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
    else
        set_unavailable(object, key, reason);
}

static void set_text(json_t *object, const char *key, const char *text, const char *reason)
{
    if (text != NULL && text[0] != '\0')
        json_object_set_new(object, key, text_value(text));
    else
        set_unavailable(object, key, reason);
}

static void set_number(json_t *object, const char *key, int64_t value, const char *reason)
{
    if (value >= 0)
        json_object_set_new(object, key, json_integer(value));
    else
        set_unavailable(object, key, reason);
}

static json_t *device_value(const struct device_info *info, const struct claim *claim,
                            const struct fly_device_energy *energy)
{
    json_t *device = json_object();
    const char *reason = energy->note[0] != '\0' && !isfinite(energy->energy_j) ? energy->note : not_said;

    json_object_set_new(device, "kind", json_string(device_kind_name(info->kind)));
    json_object_set_new(device, "index", json_integer(info->index));
    set_text(device, "name", info->name, not_said);
    set_text(device, "uuid", info->uuid, not_said);
    set_text(device, "pci", info->pci, not_said);
    set_text(device, "driver", info->driver, not_said);
    json_object_set_new(device, "emulated", json_boolean(info->emulated));
    json_object_set_new(device, "estimated", json_boolean(info->estimated));
    json_object_set_new(device, "module_power", json_boolean(info->module_power));
    json_object_set_new(device, "mig", json_boolean(info->mig));
    json_object_set_new(device, "counted", json_boolean(claim->counted));
    set_text(device, "counted_by", claim->by, "this report counts it");
    json_object_set_new(device, "source", json_string(fly_energy_source_name(energy->source)));
    for (size_t i = 0; i < DEVICE_FIGURES; i++)
        set_real(device, device_figures[i].key, device_figure_of(energy, &device_figures[i]), reason);
    json_object_set_new(device, "samples", json_integer((json_int_t)energy->samples));
    json_object_set_new(device, "note", text_value(energy->note));
    return device;
}

static json_t *devices_value(const struct run_result *result)
{
    json_t *devices = json_array();

    for (size_t i = 0; result->fault == NULL && i < result->list->count; i++)
        json_array_append_new(devices,
                              device_value(&result->list->devices[i].info, &result->claims->devices[i],
                                           &result->measured.devices[i]));
    return devices;
}

/* What became of every driver. */
static json_t *drivers_value(const struct run_result *result)
{
    json_t *drivers = json_array();

    for (size_t i = 0; i < result->list->report_count; i++) {
        const struct backend_report *report = &result->list->reports[i];
        json_t *driver = json_object();

        json_object_set_new(driver, "name", json_string(report->backend->name));
        json_object_set_new(driver, "found", json_integer((json_int_t)report->found));
        set_text(driver, "fault", report->error.code < 0 ? report->error.text : NULL, "there is none");
        json_array_append_new(drivers, driver);
    }
    return drivers;
}

static json_t *job_value(const struct run_result *result)
{
    static const char no_scheduler[] = "no variable of a scheduler or launcher says it";
    const struct identity *identity = result->identity;
    json_t *job = json_object();

    json_object_set_new(job, "id", text_value(result->claims->job));
    set_text(job, "named_by", identity->job_source, no_scheduler);
    set_text(job, "step", identity->step, no_scheduler);
    set_text(job, "node", identity->node, "the machine has no name");
    set_text(job, "ranked_by", identity->rank_source, no_scheduler);
    set_number(job, "rank", identity->rank, no_scheduler);
    set_number(job, "world_size", identity->world_size, no_scheduler);
    set_number(job, "local_rank", identity->local_rank, no_scheduler);
    set_number(job, "local_size", identity->local_size, no_scheduler);
    set_number(job, "node_rank", identity->node_rank, no_scheduler);
    set_number(job, "node_count", identity->node_count, no_scheduler);
    set_text(job, "claim_fault", result->claims->fault, "there is none");
    return job;
}

static json_t *total_value(const struct run_result *result)
{
    static const char nothing[] = "no device that is counted here has a figure";
    static const char unknown[] = "no GPU says it";
    json_t *total = json_object();
    struct run_totals totals;
    bool any;

    run_totals(result, &totals);
    any = totals.devices > 0;
    set_real(total, "energy_j", any ? totals.energy_j : NAN, nothing);
    set_real(total, "uncertainty_j", totals.devices > totals.without_bound ? totals.uncertainty_j : NAN,
             any ? "no device states a bound" : nothing);
    json_object_set_new(total, "devices", json_integer((json_int_t)totals.devices));
    json_object_set_new(total, "devices_without_bound", json_integer((json_int_t)totals.without_bound));
    json_object_set_new(total, "devices_emulated", json_integer((json_int_t)totals.emulated));
    json_object_set_new(total, "devices_estimated", json_integer((json_int_t)totals.estimated));
    json_object_set_new(total, "devices_unavailable", json_integer((json_int_t)totals.unavailable));
    json_object_set_new(total, "devices_counted_elsewhere", json_integer((json_int_t)totals.elsewhere));
    set_real(total, "gpu_idle_share", totals.idle_share, unknown);
    set_real(total, "gpu_idle_energy_share", totals.idle_energy_share, unknown);
    set_real(total, "gpu_capped_share", totals.capped_share, unknown);
    set_real(total, "gpu_heat_share", totals.heat_share, unknown);
    set_real(total, "gpu_brake_share", totals.brake_share, unknown);
    return total;
}

static json_t *own_value(const struct run_result *result)
{
    json_t *own = json_object();

    set_real(own, "cpu_s", result->own_cpu_s, "the kernel does not say");
    set_number(own, "memory_bytes", result->own_memory_bytes, "the kernel does not say");
    return own;
}

static json_t *command_value(const struct run_result *result)
{
    json_t *command = json_array();

    for (size_t i = 0; result->arguments[i] != NULL; i++)
        json_array_append_new(command, text_value(result->arguments[i]));
    return command;
}

static json_t *not_included_value(const struct run_result *result)
{
    const char *texts[NOT_INCLUDED_MAX];
    size_t count = run_not_included(result, texts);
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(texts[i]));
    return list;
}

/* A member that memory was missing for is absent; the last one tells. */
json_t *run_report_json(const struct run_result *result)
{
    json_t *document = json_object();

    json_object_set_new(document, "schema", json_string(schema));
    json_object_set_new(document, "command", command_value(result));
    json_object_set_new(document, "exit_status", json_integer(result->status));
    set_number(document, "signal", result->signal > 0 ? result->signal : -1, "no signal ended the program");
    json_object_set_new(document, "start_unix_s", json_real(result->measured.start_unix_s));
    json_object_set_new(document, "time_s", json_real(result->measured.time_s));
    json_object_set_new(document, "unmeasured_s", json_real(result->early_s));
    set_text(document, "fault", result->fault, "there is none");
    set_text(document, "selection", result->selection, "nothing hides GPUs");
    json_object_set_new(document, "job", job_value(result));
    json_object_set_new(document, "devices", devices_value(result));
    json_object_set_new(document, "drivers", drivers_value(result));
    json_object_set_new(document, "total", total_value(result));
    json_object_set_new(document, "not_included", not_included_value(result));
    if (result->tune != NULL)
        json_object_set_new(document, "tune", run_tune_json(result->tune));
    if (result->job != NULL)
        json_object_set_new(document, "recurrence", run_job_json(result->job));
    if (result->carbon != NULL)
        json_object_set_new(document, "carbon", run_carbon_json(result->carbon));
    if (json_object_set_new(document, "own", own_value(result)) == 0)
        return document;
    json_decref(document);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report on a run for programs. It uses tables of members, so that every unknown figure has
 * its reason.
 */
#include <math.h>

#include "cli/measure/run_result.h"
#include "cli/options/open_devices.h"
#include "cli/run/run_carbon.h"
#include "cli/run/run_job.h"
#include "cli/run/run_report.h"
#include "cli/run/run_tune.h"
#include "meter/device_figures.h"
#include "shapes/shape_told.h"
#include "shapes/text_value.h"

static const char not_said[] = "the device does not say", none[] = "there is none";
static const char no_gpu[] = "no GPU says it", kernel_silent[] = "the kernel does not say";

/* ---- devices ---- */

/* The members of one device. */
struct told_device {
    const struct device_info *info;
    const struct claim *claim;
    const struct fly_device_energy *energy;
    const char *why; /* the reason why figures are not known */
    double module_energy_j;
};

static json_t *kind_of(const void *from)
{
    return json_string(device_kind_name(((const struct device_info *)from)->kind));
}

static json_t *source_of(const void *from)
{
    return json_string(fly_energy_source_name(((const struct told_device *)from)->energy->source));
}

static const struct shape_field info_rows[] = {
    {.name = "kind", TOLD_MADE(kind_of)},
    {SHAPE_AT(device_info, index), TOLD_U32},
    {SHAPE_AT(device_info, name), TOLD_CHARS(device_info, name)},
    {SHAPE_AT(device_info, uuid), TOLD_CHARS(device_info, uuid)},
    {SHAPE_AT(device_info, pci), TOLD_CHARS(device_info, pci)},
    {SHAPE_AT(device_info, driver), TOLD_CHARS(device_info, driver)},
    {SHAPE_AT(device_info, emulated), TOLD_BOOL},
    {SHAPE_AT(device_info, estimated), TOLD_BOOL},
    {SHAPE_AT(device_info, module_power), TOLD_BOOL},
    {SHAPE_AT(device_info, mig), TOLD_BOOL},
};
static const struct shape info_shape = {SHAPE_OF(device_info, info_rows)};

static const struct shape_field claim_rows[] = {
    {SHAPE_AT(claim, counted), TOLD_BOOL},
    {SHAPE_AT_AS("counted_by", claim, by), TOLD_CHARS(claim, by), TOLD_ELSE("this report counts it")},
};
static const struct shape claim_shape = {SHAPE_OF(claim, claim_rows)};

static const struct shape figures_shape = {
    .size = sizeof(struct fly_device_energy), .fields = device_figures, .count = DEVICE_FIGURES};

static const struct shape_field behind_rows[] = {
    {SHAPE_AT_AS("sources_disagree", fly_device_energy, disagree), TOLD_BOOL},
    {SHAPE_AT(fly_device_energy, samples), TOLD_U64},
    {SHAPE_AT(fly_device_energy, note), TOLD_ANY_CHARS(fly_device_energy, note)},
};
static const struct shape behind_shape = {SHAPE_OF(fly_device_energy, behind_rows)};

static const struct shape_field device_rows[] = {
    {SHAPE_AT(told_device, info), TOLD_MERGED(&info_shape), TOLD_ELSE(not_said)},
    {SHAPE_AT(told_device, claim), TOLD_MERGED(&claim_shape)},
    {.name = "source", TOLD_MADE(source_of)},
    {SHAPE_AT(told_device, energy), TOLD_MERGED(&figures_shape), TOLD_ELSE_AT(told_device, why)},
    {SHAPE_AT(told_device, energy), TOLD_MERGED(&behind_shape)},
    {SHAPE_AT(told_device, module_energy_j), TOLD_NUMBER,
     TOLD_ELSE("the device tells no energy of a module")},
};
static const struct shape device_shape = {SHAPE_OF(told_device, device_rows)};

static json_t *devices_of(const void *from)
{
    const struct run_result *result = from;
    struct told_device devices[DEVICES_MAX];
    size_t count = result->fault == NULL ? result->list->count : 0;

    for (size_t i = 0; i < count; i++) {
        const struct fly_device_energy *energy = &result->measured.devices[i];
        bool noted = energy->note[0] != '\0' && !isfinite(energy->energy_j);

        devices[i] = (struct told_device){&result->list->devices[i].info, &result->claims->devices[i], energy,
                                          noted ? energy->note : not_said, result->module_energies_j[i]};
    }
    return shape_tell_list(&device_shape, devices, count);
}

/* ---- drivers: what became of every one ---- */

static json_t *driver_name_of(const void *from)
{
    return json_string(((const struct backend_report *)from)->backend->name);
}

static json_t *driver_fault_of(const void *from)
{
    const struct fly_error *error = &((const struct backend_report *)from)->error;

    return error->code < 0 && error->text[0] != '\0' ? text_value(error->text) : NULL;
}

static const struct shape_field driver_rows[] = {
    {.name = "name", TOLD_MADE(driver_name_of)},
    {SHAPE_AT(backend_report, found), TOLD_SIZE},
    {.name = "fault", TOLD_MADE(driver_fault_of), TOLD_ELSE(none)},
};
static const struct shape driver_shape = {SHAPE_OF(backend_report, driver_rows)};

static json_t *drivers_of(const void *from)
{
    const struct device_list *list = ((const struct run_result *)from)->list;

    return shape_tell_list(&driver_shape, list->reports, list->report_count);
}

/* ---- the job ---- */

static const struct shape_field identity_rows[] = {
    {SHAPE_AT_AS("named_by", identity, job_source), TOLD_TEXT},
    {SHAPE_AT(identity, step), TOLD_CHARS(identity, step)},
    {SHAPE_AT(identity, node), TOLD_CHARS(identity, node), TOLD_ELSE("the machine has no name")},
    {SHAPE_AT_AS("ranked_by", identity, rank_source), TOLD_TEXT},
    {SHAPE_AT(identity, rank), TOLD_I32},
    {SHAPE_AT(identity, world_size), TOLD_I32},
    {SHAPE_AT(identity, local_rank), TOLD_I32},
    {SHAPE_AT(identity, local_size), TOLD_I32},
    {SHAPE_AT(identity, node_rank), TOLD_I32},
    {SHAPE_AT(identity, node_count), TOLD_I32},
};
static const struct shape identity_shape = {SHAPE_OF(identity, identity_rows)};

struct told_job {
    const char *id;
    const struct identity *identity;
    const char *claim_fault;
};

static const struct shape_field job_rows[] = {
    {SHAPE_AT(told_job, id), TOLD_ANY_TEXT},
    {SHAPE_AT(told_job, identity), TOLD_MERGED(&identity_shape),
     TOLD_ELSE("no variable of a scheduler or launcher says it")},
    {SHAPE_AT(told_job, claim_fault), TOLD_TEXT, TOLD_ELSE(none)},
};
static const struct shape job_shape = {SHAPE_OF(told_job, job_rows)};

static json_t *job_of(const void *from)
{
    const struct run_result *result = from;
    const struct told_job job = {result->claims->job, result->identity, result->claims->fault};

    return shape_tell(&job_shape, &job);
}

/* ---- sums ---- */

struct told_total {
    struct run_totals sums;
    const char *no_energy, *no_bound; /* why either is not known */
};

static const struct shape_field total_rows[] = {
    {SHAPE_AT_AS("energy_j", told_total, sums.energy_j), TOLD_NUMBER, TOLD_ELSE_AT(told_total, no_energy)},
    {SHAPE_AT_AS("uncertainty_j", told_total, sums.uncertainty_j), TOLD_NUMBER,
     TOLD_ELSE_AT(told_total, no_bound)},
    {SHAPE_AT_AS("devices", told_total, sums.devices), TOLD_SIZE},
    {SHAPE_AT_AS("devices_without_bound", told_total, sums.without_bound), TOLD_SIZE},
    {SHAPE_AT_AS("devices_emulated", told_total, sums.emulated), TOLD_SIZE},
    {SHAPE_AT_AS("devices_estimated", told_total, sums.estimated), TOLD_SIZE},
    {SHAPE_AT_AS("devices_unavailable", told_total, sums.unavailable), TOLD_SIZE},
    {SHAPE_AT_AS("devices_counted_elsewhere", told_total, sums.elsewhere), TOLD_SIZE},
    {SHAPE_AT_AS("gpu_idle_share", told_total, sums.idle_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_idle_energy_share", told_total, sums.idle_energy_share), TOLD_NUMBER,
     TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_capped_share", told_total, sums.capped_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_heat_share", told_total, sums.heat_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
    {SHAPE_AT_AS("gpu_brake_share", told_total, sums.brake_share), TOLD_NUMBER, TOLD_ELSE(no_gpu)},
};
static const struct shape total_shape = {SHAPE_OF(told_total, total_rows)};

static json_t *total_of(const void *from)
{
    static const char nothing[] = "no device that is counted here has a figure";
    struct told_total total;

    run_totals(from, &total.sums);
    total.no_energy = nothing;
    total.no_bound = total.sums.devices > 0 ? "no device states a bound" : nothing;
    if (total.sums.devices == 0)
        total.sums.energy_j = NAN;
    if (total.sums.devices <= total.sums.without_bound)
        total.sums.uncertainty_j = NAN;
    return shape_tell(&total_shape, &total);
}

/* ---- the idle boost ---- */

static const char *const boost_names[IDLE_BOOST_DRIVER_COUNT] = {[IDLE_BOOST_NO_GPU] = "no GPU",
                                                                 [IDLE_BOOST_UNKNOWN] = "unknown",
                                                                 [IDLE_BOOST_EMULATED] = "emulated",
                                                                 [IDLE_BOOST_TOO_OLD] = "too old",
                                                                 [IDLE_BOOST_KNOWN] = "knows it"};

struct told_boost {
    const char *variable, *driver, *source, *text;
    enum idle_boost_driver driver_state;
};

static const struct shape_field boost_rows[] = {
    {SHAPE_AT(told_boost, variable), TOLD_TEXT},
    {SHAPE_AT(told_boost, driver), TOLD_TEXT, TOLD_ELSE("there is none, or it does not say")},
    {SHAPE_AT(told_boost, driver_state), SHAPE_IS_WORD(boost_names, IDLE_BOOST_DRIVER_COUNT)},
    {SHAPE_AT(told_boost, text), TOLD_TEXT},
    {SHAPE_AT(told_boost, source), TOLD_TEXT},
};
static const struct shape boost_shape = {SHAPE_OF(told_boost, boost_rows)};

static json_t *idle_boost_of(const void *from)
{
    const struct idle_boost *boost = ((const struct run_result *)from)->idle_boost;
    const struct told_boost told = {.variable = IDLE_BOOST_VARIABLE "=1",
                                    .driver = boost->version,
                                    .source = IDLE_BOOST_SOURCE,
                                    .text = idle_boost_text(boost->driver),
                                    .driver_state = boost->driver};

    return shape_tell(&boost_shape, &told);
}

/* ---- all of it ---- */

static json_t *schema_of(const void *from)
{
    (void)from;
    return json_string("flyball.run/2");
}

static json_t *command_of(const void *from)
{
    char *const *arguments = ((const struct run_result *)from)->arguments;
    size_t count = 0;

    while (arguments[count] != NULL)
        count++;
    return shape_tell_texts((const char *const *)arguments, count);
}

static json_t *not_included_of(const void *from)
{
    const char *texts[NOT_INCLUDED_MAX];

    return shape_tell_texts(texts, run_not_included(from, texts));
}

static json_t *tune_of(const void *from)
{
    return run_tune_json(((const struct run_result *)from)->tune);
}

static json_t *recurrence_of(const void *from)
{
    return run_job_json(((const struct run_result *)from)->job);
}

static json_t *carbon_of(const void *from)
{
    return run_carbon_json(((const struct run_result *)from)->carbon);
}

static const struct shape_field own_rows[] = {
    {SHAPE_AT_AS("cpu_s", run_result, own_cpu_s), TOLD_NUMBER, TOLD_ELSE(kernel_silent)},
    {SHAPE_AT_AS("memory_bytes", run_result, own_memory_bytes), TOLD_I64, TOLD_ELSE(kernel_silent)},
};
static const struct shape own_shape = {SHAPE_OF(run_result, own_rows)};

static const struct shape_field document_rows[] = {
    {.name = "schema", TOLD_MADE(schema_of)},
    {.name = "command", TOLD_MADE(command_of)},
    {SHAPE_AT_AS("exit_status", run_result, status), TOLD_I32},
    {SHAPE_AT(run_result, signal), .kind = SHAPE_I32, .null = SHAPE_ZERO, .most = INT32_MAX,
     TOLD_ELSE("no signal ended the program")},
    {SHAPE_AT_AS("start_unix_s", run_result, measured.start_unix_s), TOLD_NUMBER},
    {SHAPE_AT_AS("time_s", run_result, measured.time_s), TOLD_NUMBER},
    {SHAPE_AT_AS("unmeasured_s", run_result, early_s), TOLD_NUMBER},
    {SHAPE_AT(run_result, fault), TOLD_TEXT, TOLD_ELSE(none)},
    {SHAPE_AT(run_result, selection), TOLD_TEXT, TOLD_ELSE("nothing hides GPUs")},
    {.name = "job", TOLD_MADE(job_of)},
    {.name = "devices", TOLD_MADE(devices_of)},
    {.name = "drivers", TOLD_MADE(drivers_of)},
    {.name = "total", TOLD_MADE(total_of)},
    {.name = "not_included", TOLD_MADE(not_included_of)},
    {SHAPE_AT(run_result, tune), TOLD_MADE(tune_of), .need = SHAPE_SPARING},
    {SHAPE_AT_AS("recurrence", run_result, job), TOLD_MADE(recurrence_of), .need = SHAPE_SPARING},
    {SHAPE_AT(run_result, carbon), TOLD_MADE(carbon_of), .need = SHAPE_SPARING},
    {SHAPE_AT(run_result, idle_boost), TOLD_MADE(idle_boost_of), .need = SHAPE_SPARING},
    {.name = "own", SHAPE_IS_STRUCT(&own_shape)},
};
static const struct shape document_shape = {SHAPE_OF(run_result, document_rows)};

json_t *run_report_json(const struct run_result *result)
{
    return shape_tell(&document_shape, result);
}

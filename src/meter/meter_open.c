/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions that make a meter: they open and choose devices by what the caller and the
 * environment say.
 */
#include <stdlib.h>
#include <string.h>

#include "base/disabled.h"
#include "base/error.h"
#include "device/open/backends.h"
#include "device/open/selection.h"
#include "meter/meter_handle.h"
#include "meter/process_claims.h"

static int choose_devices(const struct fly_meter_options *options, struct device_list *list,
                          struct fly_error *out_error)
{
    struct visibility visible;

    if (options->gpus != NULL)
        return device_select_named(list, options->gpus, out_error);
    visible = visibility_of_environment();
    device_select_visible(list, &visible, NULL);
    return 0;
}

static int open_devices(const struct fly_meter_options *options, struct device_list *list,
                        struct fly_error *out_error)
{
    const struct device_options wanted = {
        .nvml_path = options->nvml_path,
        .amdsmi_path = options->amdsmi_path,
        .replay_path = options->replay_path,
        .cpu_tdp_w = options->cpu_tdp_w,
    };
    int code;

    if (disabled_by_user())
        return 0;
    code = device_list_open(&wanted, list, out_error);
    if (code < 0)
        return code;
    code = choose_devices(options, list, out_error);
    if (code < 0)
        device_list_close(list);
    return code;
}

/* Without memory for claims this process counts every device, as if it shared them with nobody. */
static void claim(struct fly_meter *meter)
{
    struct identity identity;

    if (meter->devices->count == 0)
        return;
    meter->owned_claims = calloc(1, sizeof *meter->owned_claims);
    if (meter->owned_claims == NULL)
        return;
    process_claims_take(meter->devices, &identity, meter->owned_claims);
    meter->claims = meter->owned_claims;
}

int fly_meter_open(const struct fly_meter_options *options, struct fly_meter **out_meter,
                   struct fly_error *out_error)
{
    struct meter_parts parts;
    struct device_list *list;
    int code;

    if (options->size < sizeof *options)
        return error_set(out_error, FLY_EUSAGE, "meter: options.size is %zu; set it to sizeof options",
                         options->size);
    list = calloc(1, sizeof *list);
    if (list == NULL)
        return error_no_memory(out_error);
    parts = (struct meter_parts){
        .devices = list,
        .sample_hz = options->sample_hz,
        .windows_max = options->windows_max,
        .synchronize = options->synchronize,
        .synchronize_data = options->synchronize_data,
    };
    code = open_devices(options, list, out_error);
    if (code == 0) {
        code = meter_new(&parts, out_meter, out_error);
        if (code < 0)
            device_list_close(list);
    }
    if (code < 0) {
        free(list);
        return code;
    }
    (*out_meter)->owned = list;
    /* Without memory for a path, the library is searched for. */
    (*out_meter)->nvml_path = options->nvml_path != NULL ? strdup(options->nvml_path) : NULL;
    (*out_meter)->amdsmi_path = options->amdsmi_path != NULL ? strdup(options->amdsmi_path) : NULL;
    claim(*out_meter);
    return 0;
}

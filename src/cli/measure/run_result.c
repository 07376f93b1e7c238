/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/run_result.h"

#include "base/error.h"
#include "cli/options/open_devices.h"
#include "meter/meter.h"

int metered_devices_open(const struct cli_call *call, struct metered_devices *out_devices,
                         struct fly_error *out_error)
{
    struct metered_devices *devices = out_devices;
    struct meter_parts parts = {.devices = &devices->list};
    int result = cli_open_devices(call, GPUS_VISIBLE, &devices->list, devices->selection, &devices->fault);

    if (result == FLY_EUSAGE)
        return cli_value_error(call, "gpus", cli_text(call, "gpus"), "indices, UUIDs, all or none, each once",
                               out_error);
    /* The user named a GPU that does not exist. */
    if (result == FLY_ENOTFOUND && cli_text(call, "gpus") != NULL)
        return error_set(out_error, result, "%s", devices->fault.text);
    if (result < 0)
        return 0;
    devices->opened = true;
    if (devices->list.count == 0) {
        error_set(&devices->fault, FLY_EUNSUPPORTED,
                  "no device here can be measured; 'flyball doctor' says why, and what would change it");
        return 0;
    }
    if (meter_new(&parts, &devices->meter, &devices->fault) < 0)
        devices->meter = NULL;
    return 0;
}

void metered_devices_close(struct metered_devices *devices)
{
    fly_meter_close(devices->meter);
    devices->meter = NULL;
    if (devices->opened)
        device_list_close(&devices->list);
    devices->opened = false;
}

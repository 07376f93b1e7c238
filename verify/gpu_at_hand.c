/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/gpu_at_hand.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/open/selection.h"
#include "meter/meter.h"

static int find_place(struct gpu_at_hand *gpu)
{
    const struct nvml_calls *call = &gpu->nvml->call;
    struct nvml_pci_info place = {0};
    struct nvml_pci_info_v2 old_place = {0};

    if (call->pci != NULL && call->pci(gpu->device, &place) == NVML_SUCCESS)
        memcpy(gpu->pci, place.bus_id, sizeof gpu->pci);
    else if (call->pci_v2 != NULL && call->pci_v2(gpu->device, &old_place) == NVML_SUCCESS)
        memcpy(gpu->pci, old_place.bus_id, sizeof old_place.bus_id);
    else
        return FLY_ENOTFOUND;
    return 0;
}

int gpu_open(const char *nvml_path, unsigned index, struct gpu_at_hand *out_gpu, struct fly_error *out_error)
{
    int code;

    memset(out_gpu, 0, sizeof *out_gpu);
    out_gpu->nvml_path = nvml_path;
    out_gpu->index = index;
    code = nvml_library_open(nvml_path, &out_gpu->nvml, out_error);
    if (code < 0)
        return code;
    code = out_gpu->nvml->call.handle(index, &out_gpu->device);
    if (code != NVML_SUCCESS)
        return error_set(out_error, FLY_ENOTFOUND, "the driver has no GPU %u: %s", index, nvml_meaning(code));
    if (find_place(out_gpu) < 0)
        return error_set(out_error, FLY_ENOTFOUND, "the driver does not tell where GPU %u is on the bus",
                         index);
    return 0;
}

int gpu_open_meter(struct gpu_at_hand *gpu, struct fly_error *out_error)
{
    struct device_options options = {.nvml_path = gpu->nvml_path};
    struct meter_parts parts = {.devices = &gpu->list};
    char named[16];
    int code = device_backend_nvml.open(&options, &gpu->list, out_error);

    snprintf(named, sizeof named, "%u", gpu->index);
    if (code == 0)
        code = device_select_named(&gpu->list, named, out_error);
    return code == 0 ? meter_new(&parts, &gpu->meter, out_error) : code;
}

double gpu_counter_j(const struct gpu_at_hand *gpu)
{
    unsigned long long energy_mj;

    if (gpu->nvml->call.energy == NULL || gpu->nvml->call.energy(gpu->device, &energy_mj) != NVML_SUCCESS)
        return NAN;
    return (double)energy_mj * 1e-3;
}

void gpu_close(struct gpu_at_hand *gpu)
{
    fly_meter_close(gpu->meter);
    gpu->meter = NULL;
    device_list_close(&gpu->list);
    if (gpu->nvml != NULL)
        nvml_library_release(gpu->nvml);
    gpu->nvml = NULL;
}

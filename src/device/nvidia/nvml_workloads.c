/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and requests workload power profiles, by the newest functions that the driver has. */
#include "device/nvidia/nvml_workloads.h"

#include <stdio.h>
#include <string.h>

#include "device/nvidia/nvml_quantities.h"
#include "device/refusal.h"

_Static_assert(sizeof(struct workload_set) == sizeof(struct nvml_workload_mask), "one layout of sets");

static struct workload_set set_of(const struct nvml_workload_mask *mask)
{
    struct workload_set set;

    memcpy(&set, mask, sizeof set);
    return set;
}

static struct nvml_workload_mask mask_of(const struct workload_set *set)
{
    struct nvml_workload_mask mask;

    memcpy(&mask, set, sizeof mask);
    return mask;
}

int nvml_workloads_read(const struct nvml_calls *call, struct nvml_device *handle,
                        struct workloads *out_workloads)
{
    struct nvml_workloads_current current = {.version = NVML_WORKLOADS_CURRENT};
    int code = call->workloads != NULL ? call->workloads(handle, &current) : NVML_FUNCTION_NOT_FOUND;

    if (code == NVML_SUCCESS)
        *out_workloads = (struct workloads){set_of(&current.supported), set_of(&current.requested),
                                            set_of(&current.enforced)};
    return code;
}

/* Calls one of the two older functions, unless it has nothing to do. */
static int change(nvmlDeviceWorkloadPowerProfileSetRequestedProfiles_function *function,
                  struct nvml_device *handle, const struct workload_set *changed)
{
    struct nvml_workloads_requested requested = {.version = NVML_WORKLOADS_REQUESTED,
                                                 .mask = mask_of(changed)};

    return workload_is_empty(changed) ? NVML_SUCCESS : function(handle, &requested);
}

static int request_by_parts(const struct nvml_calls *call, struct nvml_device *handle,
                            const struct workload_set *wanted)
{
    struct workloads now = {.requested = {{0}}};
    struct workload_set added, taken;
    int code = nvml_workloads_read(call, handle, &now);

    if (code != NVML_SUCCESS)
        return code;
    if (call->set_workloads == NULL || call->clear_workloads == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    added = workload_without(wanted, &now.requested);
    taken = workload_without(&now.requested, wanted);
    code = change(call->set_workloads, handle, &added);
    if (code != NVML_SUCCESS)
        return code;
    code = change(call->clear_workloads, handle, &taken);
    if (code != NVML_SUCCESS)
        (void)change(call->clear_workloads, handle, &added);
    return code;
}

int nvml_workloads_request(const struct nvml_calls *call, struct nvml_device *handle,
                           const struct workload_set *wanted)
{
    struct nvml_workloads_update update = {.operation = NVML_WORKLOADS_OVERWRITE, .mask = mask_of(wanted)};
    int code =
        call->update_workloads != NULL ? call->update_workloads(handle, &update) : NVML_FUNCTION_NOT_FOUND;

    /* The library may be newer than the driver behind it, which then knows the older functions alone. */
    return code == NVML_FUNCTION_NOT_FOUND || code == NVML_NOT_SUPPORTED
               ? request_by_parts(call, handle, wanted)
               : code;
}

int nvml_workloads_error(const struct device_info *info, const struct workload_set *wanted, int code,
                         struct fly_error *out_error)
{
    char text[WORKLOAD_TEXT_MAX], attempt[160], look[160];

    workload_text(wanted, text);
    snprintf(attempt, sizeof attempt, "requesting the workload power profiles %.100s", text);
    snprintf(look, sizeof look, "nvidia-smi power-profiles -l -i %s", info->uuid);
    return device_refused(info,
                          &(struct device_refusal){.state = nvml_reading_state(code),
                                                   .attempt = attempt,
                                                   .interface = "NVML",
                                                   .meaning = nvml_meaning(code),
                                                   .code = code,
                                                   .look = look},
                          out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Workload power profiles. The sets of NVML and those of the state have one layout. */
#include <string.h>

#include "emulator/api.h"
#include "emulator/call.h"
#include "emulator/workload_profiles.h"

_Static_assert(sizeof(struct nvml_workload_mask) == sizeof(struct workload_set), "one layout of sets");

static struct nvml_workload_mask mask_of(struct workload_set set)
{
    struct nvml_workload_mask mask;

    memcpy(&mask, &set, sizeof mask);
    return mask;
}

/* Begins a call with a structure of that version on a board that has profiles. */
static int begin(struct call *call, const char *function, const struct nvml_device *device,
                 const unsigned *version, unsigned expected)
{
    int code = call_device(call, function, device, version != NULL);

    if (code != NVML_SUCCESS)
        return code;
    if (!gpu_board(call->gpu)->has_workloads)
        return call_end(call, NVML_NOT_SUPPORTED);
    return *version == expected ? NVML_SUCCESS : call_end(call, NVML_ARGUMENT_VERSION_MISMATCH);
}

int nvmlDeviceWorkloadPowerProfileGetProfilesInfo(struct nvml_device *device,
                                                  struct nvml_workload_infos *infos)
{
    struct call call;
    int code = begin(&call, __func__, device, infos != NULL ? &infos->version : NULL, NVML_WORKLOAD_INFOS);

    if (code != NVML_SUCCESS)
        return code;
    memset(infos->profiles, 0, sizeof infos->profiles);
    infos->supported = mask_of(workloads_supported(call.gpu));
    for (unsigned i = 0; i < workload_profile_count; i++) {
        const struct workload_profile *workload = &workload_profiles[i];

        infos->profiles[workload->id] =
            (struct nvml_workload_info){.version = NVML_WORKLOAD_INFO,
                                        .id = workload->id,
                                        .priority = workload->priority,
                                        .conflicts = mask_of(workloads_conflicting(workload))};
    }
    return call_end(&call, NVML_SUCCESS);
}

int nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(struct nvml_device *device,
                                                     struct nvml_workloads_current *current)
{
    struct call call;
    int code =
        begin(&call, __func__, device, current != NULL ? &current->version : NULL, NVML_WORKLOADS_CURRENT);

    if (code != NVML_SUCCESS)
        return code;
    current->supported = mask_of(workloads_supported(call.gpu));
    current->requested = mask_of(call.gpu->requested);
    current->enforced = mask_of(workloads_enforced(call.gpu));
    return call_end(&call, NVML_SUCCESS);
}

/* Changes what is requested; the whole set is refused if the board lacks one of its profiles. */
static int change(struct call *call, unsigned operation, const struct nvml_workload_mask *mask)
{
    struct workload_set set, supported = workloads_supported(call->gpu), now = call->gpu->requested;

    memcpy(&set, mask, sizeof set);
    if (!gpu_board(call->gpu)->has_workloads)
        return call_end(call, NVML_NOT_SUPPORTED);
    if (operation > NVML_WORKLOADS_OVERWRITE || !workload_is_within(&set, &supported))
        return call_end(call, NVML_INVALID_ARGUMENT);
    call->gpu->requested = operation == NVML_WORKLOADS_CLEAR ? workload_without(&now, &set)
                           : operation == NVML_WORKLOADS_SET ? workload_union(&now, &set)
                                                             : set;
    gpu_changed(call->gpu, call->now_ns);
    return call_end(call, NVML_SUCCESS);
}

int nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1(struct nvml_device *device,
                                                    struct nvml_workloads_update *update)
{
    struct call call;
    int code = call_setting(&call, __func__, device, update != NULL);

    return code != NVML_SUCCESS ? code : change(&call, update->operation, &update->mask);
}

static int change_by(const char *function, const struct nvml_device *device, unsigned operation,
                     const struct nvml_workloads_requested *requested)
{
    struct call call;
    int code = call_setting(&call, function, device, requested != NULL);

    if (code != NVML_SUCCESS)
        return code;
    if (requested->version != NVML_WORKLOADS_REQUESTED)
        return call_end(&call, gpu_board(call.gpu)->has_workloads ? NVML_ARGUMENT_VERSION_MISMATCH
                                                                  : NVML_NOT_SUPPORTED);
    return change(&call, operation, &requested->mask);
}

int nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(struct nvml_device *device,
                                                       struct nvml_workloads_requested *requested)
{
    return change_by(__func__, device, NVML_WORKLOADS_SET, requested);
}

int nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(struct nvml_device *device,
                                                         struct nvml_workloads_requested *requested)
{
    return change_by(__func__, device, NVML_WORKLOADS_CLEAR, requested);
}

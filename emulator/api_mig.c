/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs divided into MIG instances: their handles. Power is known only for the whole GPU. */
#include "emulator/api.h"
#include "emulator/call.h"
#include "emulator/identity.h"

enum { MEMORY_PARTS = 8, MIB_BITS = 20 };

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
    struct call call;
    int code = call_device(&call, __func__, device, current != NULL && pending != NULL);

    if (code == NVML_SUCCESS && !gpu_board(call.gpu)->has_mig)
        code = NVML_NOT_SUPPORTED;
    if (code == NVML_SUCCESS) {
        *current =
            emulator_instances(&call.state->settings, call.gpu->index) > 0 ? NVML_ENABLED : NVML_DISABLED;
        *pending = *current;
    }
    return call_end(&call, code);
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned *count)
{
    struct call call;
    int code = call_device(&call, __func__, device, count != NULL);

    if (code == NVML_SUCCESS)
        *count = emulator_instances(&call.state->settings, call.gpu->index) > 0 ? EMULATOR_INSTANCES_MAX : 0;
    return call_end(&call, code);
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **out)
{
    struct call call;
    int code = call_device(&call, __func__, device, out != NULL);

    if (code == NVML_SUCCESS && !gpu_board(call.gpu)->has_mig)
        code = NVML_NOT_SUPPORTED;
    if (code == NVML_SUCCESS && index >= emulator_instances(&call.state->settings, call.gpu->index))
        code = NVML_NOT_FOUND;
    if (code == NVML_SUCCESS)
        *out = call_instance_handle(call.gpu->index, index);
    return call_end(&call, code);
}

int nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, unsigned *is_mig)
{
    struct call call;
    int code = call_instance(&call, __func__, device, is_mig != NULL);

    if (code == NVML_SUCCESS)
        *is_mig = call.instance >= 0;
    return call_end(&call, code);
}

/* Begins a call that only an instance can answer. */
static int call_within(struct call *call, const char *function, const struct nvml_device *device, bool given)
{
    int code = call_instance(call, function, device, given);

    return code == NVML_SUCCESS && call->instance < 0 ? call_end(call, NVML_INVALID_ARGUMENT) : code;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *device, struct nvml_device **out)
{
    struct call call;
    int code = call_within(&call, __func__, device, out != NULL);

    if (code == NVML_SUCCESS && out != NULL)
        *out = call_handle(call.gpu->index);
    return call_end(&call, code);
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *device, unsigned *id)
{
    struct call call;
    int code = call_within(&call, __func__, device, id != NULL);

    if (code == NVML_SUCCESS && id != NULL)
        *id = identity_instance_id((unsigned)call.instance);
    return call_end(&call, code);
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *device, unsigned *id)
{
    struct call call;
    int code = call_within(&call, __func__, device, id != NULL);

    if (code == NVML_SUCCESS && id != NULL)
        *id = 0;
    return call_end(&call, code);
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_device_attributes *attributes)
{
    struct call call;
    int code = call_within(&call, __func__, device, attributes != NULL);

    if (code == NVML_SUCCESS && attributes != NULL)
        *attributes = (struct nvml_device_attributes){
            .multiprocessors = gpu_board(call.gpu)->multiprocessors / EMULATOR_INSTANCES_MAX,
            .gpu_slices = 1,
            .compute_slices = 1,
            .memory_mib = gpu_board(call.gpu)->memory_bytes / MEMORY_PARTS >> MIB_BITS};
    return call_end(&call, code);
}

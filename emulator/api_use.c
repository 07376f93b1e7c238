/* SPDX-License-Identifier: Apache-2.0 */
/* Temperature, utilisation, memory, processes and persistence. */
#include <math.h>

#include "emulator/getter.h"

enum { THRESHOLD_SHUTDOWN_C = 92, THRESHOLD_SLOWDOWN_C = 89, THRESHOLD_MEMORY_C = 95, THRESHOLD_GPU_C = 85 };
enum { UTILIZATION_PERIOD_US = 166000, PERCENT = 100 };

static const double resting_bytes = 0.008; /* share of the memory that a driver takes */

static unsigned temperature(const struct call *call)
{
    double temperature_c = history_temperature_c(&call->gpu->history, &call->gpu->inertia, call->now_ns);

    return (unsigned)(call->gpu->hot ? fmax(temperature_c, THRESHOLD_SLOWDOWN_C) : temperature_c);
}

int nvmlDeviceGetTemperature(struct nvml_device *device, unsigned sensor, unsigned *temperature_c)
{
    struct call call;
    int code = call_device(&call, __func__, device, temperature_c != NULL && sensor == NVML_TEMPERATURE_GPU);

    if (code == NVML_SUCCESS)
        *temperature_c = temperature(&call);
    return call_end(&call, code);
}

int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature_v1 *answer)
{
    struct call call;
    int code = call_device(&call, __func__, device, answer != NULL && answer->sensor == NVML_TEMPERATURE_GPU);

    if (code == NVML_SUCCESS && answer->version != NVML_TEMPERATURE_V1)
        code = NVML_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        answer->temperature_c = (int)temperature(&call);
    return call_end(&call, code);
}

int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, unsigned type, unsigned *temperature_c)
{
    static const unsigned thresholds[] = {
        [NVML_THRESHOLD_SHUTDOWN] = THRESHOLD_SHUTDOWN_C,
        [NVML_THRESHOLD_SLOWDOWN] = THRESHOLD_SLOWDOWN_C,
        [NVML_THRESHOLD_MEMORY_MAX] = THRESHOLD_MEMORY_C,
        [NVML_THRESHOLD_GPU_MAX] = THRESHOLD_GPU_C,
    };
    struct call call;
    int code = call_device(&call, __func__, device, temperature_c != NULL);

    if (code == NVML_SUCCESS && type >= sizeof thresholds / sizeof thresholds[0])
        code = NVML_NOT_SUPPORTED;
    if (code == NVML_SUCCESS)
        *temperature_c = thresholds[type];
    return call_end(&call, code);
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    struct call call;
    int code = call_device(&call, __func__, device, utilization != NULL);
    double part;

    if (code != NVML_SUCCESS)
        return code;
    part = history_mean_utilization(&call.gpu->history, call.now_ns, UTILIZATION_PERIOD_US * 1e-6);
    *utilization = (struct nvml_utilization){.gpu = (unsigned)(part * PERCENT + 0.5),
                                             .memory = (unsigned)(part * PERCENT * 0.5 + 0.5)};
    return call_end(&call, code);
}

static unsigned long long reserved(const struct emulated_gpu *gpu)
{
    return (unsigned long long)((double)gpu_board(gpu)->memory_bytes * resting_bytes);
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    struct call call;
    int code = call_device(&call, __func__, device, memory != NULL);
    unsigned long long used;

    if (code != NVML_SUCCESS)
        return code;
    memory->total = gpu_board(call.gpu)->memory_bytes;
    used = gpu_memory_used(call.gpu) + reserved(call.gpu);
    memory->used = used < memory->total ? used : memory->total;
    memory->free = memory->total - memory->used;
    return call_end(&call, code);
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    struct call call;
    int code = call_device(&call, __func__, device, memory != NULL);

    if (code == NVML_SUCCESS && memory->version != NVML_MEMORY_V2)
        code = NVML_ARGUMENT_VERSION_MISMATCH;
    if (code != NVML_SUCCESS)
        return call_end(&call, code);
    memory->total = gpu_board(call.gpu)->memory_bytes;
    memory->reserved = reserved(call.gpu);
    memory->used = gpu_memory_used(call.gpu);
    if (memory->used > memory->total - memory->reserved)
        memory->used = memory->total - memory->reserved;
    memory->free = memory->total - memory->reserved - memory->used;
    return call_end(&call, code);
}

static int coder(const char *function, const struct nvml_device *device, unsigned *percent,
                 unsigned *period_us)
{
    struct call call;
    int code = call_device(&call, function, device, percent != NULL && period_us != NULL);

    if (code == NVML_SUCCESS) {
        *percent = 0;
        *period_us = UTILIZATION_PERIOD_US;
    }
    return call_end(&call, code);
}

int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, unsigned *percent, unsigned *period_us)
{
    return coder(__func__, device, percent, period_us);
}

int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, unsigned *percent, unsigned *period_us)
{
    return coder(__func__, device, percent, period_us);
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *device, unsigned counter, unsigned *kb_per_s)
{
    struct call call;
    int code = call_device(&call, __func__, device, kb_per_s != NULL);

    (void)counter;
    if (code == NVML_SUCCESS)
        *kb_per_s = 0;
    return call_end(&call, code);
}

int nvmlDeviceGetEccMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
    struct call call;
    int code = call_device(&call, __func__, device, current != NULL && pending != NULL);

    if (code == NVML_SUCCESS) {
        *current = NVML_ENABLED;
        *pending = NVML_ENABLED;
    }
    return call_end(&call, code);
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned type, unsigned counter,
                                unsigned long long *errors)
{
    struct call call;
    int code = call_device(&call, __func__, device, errors != NULL);

    (void)type;
    (void)counter;
    if (code == NVML_SUCCESS)
        *errors = 0;
    return call_end(&call, code);
}

static int get_persistence(const struct call *call, unsigned *out_value)
{
    *out_value = call->gpu->persistent ? NVML_ENABLED : NVML_DISABLED;
    return NVML_SUCCESS;
}

/* clang-format off */
GETTER(nvmlDeviceGetNumFans, getter_zero)
GETTER(nvmlDeviceGetPersistenceMode, get_persistence)
/* clang-format on */

int nvmlDeviceSetPersistenceMode(struct nvml_device *device, unsigned enabled)
{
    struct call call;
    int code = call_setting(&call, __func__, device, enabled <= NVML_ENABLED);

    if (code == NVML_SUCCESS)
        call.gpu->persistent = enabled == NVML_ENABLED;
    return call_end(&call, code);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes work on a GPU. */
#include "emulator/api.h"
#include "emulator/call.h"

enum { PERCENT = 100, NS_PER_US = 1000 };

/* The slots at work, in order. */
static unsigned at_work(const struct emulated_gpu *gpu, const struct work_slot *out_slots[EMULATOR_SLOTS])
{
    unsigned count = 0;

    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        if (gpu->slots[i].used)
            out_slots[count++] = &gpu->slots[i];
    }
    return count;
}

/* Sets the count as NVML does: all of them on success, and otherwise the number that would be needed. */
static int fit(unsigned found, unsigned *count, const void *out)
{
    bool fits = found <= *count && (out != NULL || found == 0);

    *count = found;
    return fits ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *count,
                                         struct nvml_process_v1 *processes)
{
    const struct work_slot *slots[EMULATOR_SLOTS];
    struct call call;
    int code = call_device(&call, __func__, device, count != NULL);

    if (code == NVML_SUCCESS)
        code = fit(at_work(call.gpu, slots), count, processes);
    for (unsigned i = 0; code == NVML_SUCCESS && i < *count; i++)
        processes[i] = (struct nvml_process_v1){.pid = (unsigned)slots[i]->pid,
                                                .memory_bytes = slots[i]->load.memory_bytes};
    return call_end(&call, code);
}

static int compute(const char *function, const struct nvml_device *device, unsigned *count,
                   struct nvml_process *processes)
{
    const struct work_slot *slots[EMULATOR_SLOTS];
    struct call call;
    int code = call_device(&call, function, device, count != NULL);

    if (code == NVML_SUCCESS)
        code = fit(at_work(call.gpu, slots), count, processes);
    for (unsigned i = 0; code == NVML_SUCCESS && i < *count; i++)
        processes[i] = (struct nvml_process){.pid = (unsigned)slots[i]->pid,
                                             .memory_bytes = slots[i]->load.memory_bytes,
                                             .gpu_instance = NVML_NO_INSTANCE,
                                             .compute_instance = NVML_NO_INSTANCE};
    return call_end(&call, code);
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count,
                                            struct nvml_process *processes)
{
    return compute(__func__, device, count, processes);
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                            struct nvml_process *processes)
{
    return compute(__func__, device, count, processes);
}

/* Nothing renders here, and no server shares a GPU. */
static int nobody(const char *function, const struct nvml_device *device, unsigned *count)
{
    struct call call;
    int code = call_device(&call, function, device, count != NULL);

    if (code == NVML_SUCCESS)
        *count = 0;
    return call_end(&call, code);
}

int nvmlDeviceGetGraphicsRunningProcesses(struct nvml_device *device, unsigned *count,
                                          struct nvml_process_v1 *processes)
{
    (void)processes;
    return nobody(__func__, device, count);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(struct nvml_device *device, unsigned *count,
                                             struct nvml_process *processes)
{
    (void)processes;
    return nobody(__func__, device, count);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                             struct nvml_process *processes)
{
    (void)processes;
    return nobody(__func__, device, count);
}

int nvmlDeviceGetMPSComputeRunningProcesses(struct nvml_device *device, unsigned *count,
                                            struct nvml_process_v1 *processes)
{
    (void)processes;
    return nobody(__func__, device, count);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count,
                                               struct nvml_process *processes)
{
    (void)processes;
    return nobody(__func__, device, count);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                               struct nvml_process *processes)
{
    (void)processes;
    return nobody(__func__, device, count);
}

int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
                                    unsigned *count, unsigned long long last_us)
{
    const struct work_slot *slots[EMULATOR_SLOTS];
    struct call call;
    int code = call_device(&call, __func__, device, count != NULL);
    unsigned found;

    (void)last_us;
    if (code != NVML_SUCCESS)
        return code;
    found = at_work(call.gpu, slots);
    code = found == 0 ? NVML_NOT_FOUND : fit(found, count, samples);
    for (unsigned i = 0; code == NVML_SUCCESS && i < found; i++) {
        unsigned percent = (unsigned)(slots[i]->load.utilization * PERCENT + 0.5);

        samples[i] = (struct nvml_process_utilization){
            .pid = (unsigned)slots[i]->pid,
            .timestamp_us = (unsigned long long)((state_date_ns(call.state, call.now_ns)) / NS_PER_US),
            .sm = percent,
            .memory = percent / 2};
    }
    return call_end(&call, code);
}

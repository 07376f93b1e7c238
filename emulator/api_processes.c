/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes work on a GPU, of which kind. As NVIDIA's driver does, a list of MPS clients repeats those
 * that the list of computing processes has; the latter also has their server.
 */
#include "emulator/api.h"
#include "emulator/call.h"
#include "emulator/identity.h"
#include "emulator/process_view.h"

#define KIND(kind) (1U << EMULATOR_WORK_##kind)
enum {
    COMPUTING = KIND(COMPUTE) | KIND(MPS) | KIND(MPS_SERVER),
    RENDERING = KIND(GRAPHICS),
    CLIENTS = KIND(MPS)
};
#undef KIND

/* Processes as the caller sees them, each once for every instance. */
struct seen {
    unsigned count;
    struct nvml_process processes[EMULATOR_SLOTS];
};

static void add(struct seen *seen, const struct nvml_process *process)
{
    for (unsigned i = 0; i < seen->count; i++) {
        if (seen->processes[i].pid == process->pid &&
            seen->processes[i].gpu_instance == process->gpu_instance) {
            seen->processes[i].memory_bytes += process->memory_bytes;
            return;
        }
    }
    seen->processes[seen->count++] = *process;
}

/* Those of the wanted kinds: of the instance whose handle was given, or of the whole GPU. */
static void look(const struct call *call, unsigned kinds, struct seen *out)
{
    out->count = 0;
    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        const struct work_slot *slot = &call->gpu->slots[i];
        int instance = slot->role.instance;
        struct nvml_process process = {.memory_bytes = slot->load.memory_bytes,
                                       .gpu_instance = NVML_NO_INSTANCE,
                                       .compute_instance = NVML_NO_INSTANCE};

        if (!slot->used || (kinds & 1U << slot->role.kind) == 0 ||
            (call->instance >= 0 && instance != call->instance))
            continue;
        process.pid = (unsigned)process_view(&slot->owner);
        if (process.pid == 0)
            continue;
        if (instance >= 0) {
            process.gpu_instance = identity_instance_id((unsigned)instance);
            process.compute_instance = 0;
        }
        add(out, &process);
    }
}

/* Sets the count as NVML does: all of them on success, and otherwise the number that would be needed. */
static int fit(unsigned found, unsigned *count, const void *out)
{
    bool fits = found <= *count && (out != NULL || found == 0);

    *count = found;
    return fits ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

static int list(const char *function, const struct nvml_device *device, unsigned kinds, unsigned *count,
                struct nvml_process *processes)
{
    struct seen seen;
    struct call call;
    int code = call_instance(&call, function, device, count != NULL);

    if (code != NVML_SUCCESS)
        return code;
    look(&call, kinds, &seen);
    code = fit(seen.count, count, processes);
    for (unsigned i = 0; code == NVML_SUCCESS && i < seen.count; i++)
        processes[i] = seen.processes[i];
    return call_end(&call, code);
}

static int list_v1(const char *function, const struct nvml_device *device, unsigned kinds, unsigned *count,
                   struct nvml_process_v1 *processes)
{
    struct seen seen;
    struct call call;
    int code = call_instance(&call, function, device, count != NULL);

    if (code != NVML_SUCCESS)
        return code;
    look(&call, kinds, &seen);
    code = fit(seen.count, count, processes);
    for (unsigned i = 0; code == NVML_SUCCESS && i < seen.count; i++)
        processes[i] = (struct nvml_process_v1){.pid = seen.processes[i].pid,
                                                .memory_bytes = seen.processes[i].memory_bytes};
    return call_end(&call, code);
}

#define LIST(symbol, kinds)                                                                 \
    int symbol(struct nvml_device *device, unsigned *count, struct nvml_process *processes) \
    {                                                                                       \
        return list(__func__, device, (kinds), count, processes);                           \
    }
#define LIST_V1(symbol, kinds)                                                                 \
    int symbol(struct nvml_device *device, unsigned *count, struct nvml_process_v1 *processes) \
    {                                                                                          \
        return list_v1(__func__, device, (kinds), count, processes);                           \
    }
LIST_V1(nvmlDeviceGetComputeRunningProcesses, COMPUTING)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTING)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTING)
LIST_V1(nvmlDeviceGetGraphicsRunningProcesses, RENDERING)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, RENDERING)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, RENDERING)
LIST_V1(nvmlDeviceGetMPSComputeRunningProcesses, CLIENTS)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, CLIENTS)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, CLIENTS)
#undef LIST
#undef LIST_V1

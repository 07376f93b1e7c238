/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver has a list for each kind of process, and a process may be in several. Each list is asked for
 * with room for what any GPU has in practice; where that is not enough, with as much as the driver says,
 * until it is.
 */
#include "device/nvidia/nvml_processes.h"

#include <stdlib.h>

#include "device/nvidia/nvml_quantities.h"

/* A count above this is a fault of the driver, and must not fill the memory. */
enum { TRIES = 4, ROOM_TO_SPARE = 8, COUNT_MAX = 1 << 16 };

/* A list of the driver: of entries as of today, or else of those before any name ended in a number. */
struct list_calls {
    int (*now)(struct nvml_device *device, unsigned *count, struct nvml_process *processes);
    int (*once)(struct nvml_device *device, unsigned *count, struct nvml_process_v1 *processes);
};

/* Room for either layout. */
union entries {
    void *memory;
    struct nvml_process *now;
    struct nvml_process_v1 *once;
};

/* The processes found so far, and where they go. */
struct found {
    struct device_process *processes;
    size_t maximum, count;
};

static struct list_calls calls_of(const struct nvml_calls *call, enum device_process_kind kind)
{
    switch (kind) {
    case DEVICE_PROCESS_GRAPHICS:
        return (struct list_calls){call->graphics, call->graphics_v1};
    case DEVICE_PROCESS_MPS:
        return (struct list_calls){call->mps, call->mps_v1};
    default:
        return (struct list_calls){call->processes, call->processes_v1};
    }
}

static int ask(const struct list_calls *call, struct nvml_device *device, unsigned *count,
               union entries entries)
{
    if (call->now != NULL)
        return call->now(device, count, entries.now);
    return call->once != NULL ? call->once(device, count, entries.once) : NVML_FUNCTION_NOT_FOUND;
}

static struct device_process translate(const struct list_calls *call, union entries entries, unsigned place)
{
    if (call->now != NULL)
        return (struct device_process){.pid = (pid_t)entries.now[place].pid,
                                       .memory_bytes = entries.now[place].memory_bytes,
                                       .instance = entries.now[place].gpu_instance};
    return (struct device_process){.pid = (pid_t)entries.once[place].pid,
                                   .memory_bytes = entries.once[place].memory_bytes,
                                   .instance = DEVICE_NO_INSTANCE};
}

static void add(struct found *found, const struct device_process *process)
{
    struct device_process *known = found->processes, *end = known + found->count;

    while (known < end && (known->pid != process->pid || known->instance != process->instance))
        known++;
    if (known == end && found->count < found->maximum) {
        *known = *process;
        found->count++;
    } else if (known < end) {
        known->kind = process->kind;
        if (process->memory_bytes != DEVICE_MEMORY_UNKNOWN)
            known->memory_bytes = process->memory_bytes;
    }
}

static void add_all(struct found *found, enum device_process_kind kind, const struct list_calls *call,
                    union entries entries, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct device_process process = translate(call, entries, i);

        process.kind = kind;
        add(found, &process);
    }
}

/* Asks again with memory of its own, as long as there are more by then. Returns a code of NVML. */
static int read_many(const struct list_calls *call, struct nvml_device *device, unsigned needed,
                     enum device_process_kind kind, struct found *found)
{
    union entries entries = {.memory = NULL};
    unsigned room = 0, count = needed;
    int code = NVML_INSUFFICIENT_SIZE;

    for (int i = 0; i < TRIES && code == NVML_INSUFFICIENT_SIZE && count <= COUNT_MAX; i++) {
        void *memory = realloc(entries.memory, (count + (size_t)ROOM_TO_SPARE) * sizeof *entries.now);

        if (memory == NULL) {
            code = NVML_MEMORY;
            break;
        }
        entries.memory = memory;
        room = count + ROOM_TO_SPARE;
        count = room;
        code = ask(call, device, &count, entries);
    }
    if (code == NVML_SUCCESS)
        add_all(found, kind, call, entries, count < room ? count : room);
    free(entries.memory);
    return code;
}

static int read_kind(const struct nvml_calls *call, struct nvml_device *device, enum device_process_kind kind,
                     struct found *found)
{
    struct nvml_process room[DEVICE_PROCESSES_AT_ONCE];
    struct list_calls list = calls_of(call, kind);
    union entries entries = {.now = room};
    unsigned count = DEVICE_PROCESSES_AT_ONCE;
    int code = ask(&list, device, &count, entries);

    if (code == NVML_INSUFFICIENT_SIZE)
        return read_many(&list, device, count, kind, found);
    if (code == NVML_SUCCESS)
        add_all(found, kind, &list, entries,
                count < DEVICE_PROCESSES_AT_ONCE ? count : DEVICE_PROCESSES_AT_ONCE);
    return code;
}

static int error_code(int nvml_code)
{
    switch (nvml_reading_state(nvml_code)) {
    case READING_OK:
        return 0;
    case READING_UNSUPPORTED:
    case READING_MISSING:
        return FLY_EUNSUPPORTED;
    case READING_DENIED:
        return FLY_EPERM;
    default:
        return nvml_code == NVML_MEMORY ? FLY_ENOMEM : FLY_EREAD;
    }
}

int nvml_processes_read(const struct nvml_calls *call, struct nvml_device *device, unsigned kinds,
                        struct device_process *processes, size_t maximum, size_t *out_count)
{
    struct found found = {.processes = processes, .maximum = maximum};
    bool listed = false;

    for (int kind = 0; kind < DEVICE_PROCESS_KIND_COUNT; kind++) {
        int code;

        if ((kinds & DEVICE_PROCESS_BIT(kind)) == 0)
            continue;
        code = error_code(read_kind(call, device, kind, &found));
        if (code < 0 && code != FLY_EUNSUPPORTED)
            return code;
        listed = listed || code == 0;
    }
    if (!listed)
        return FLY_EUNSUPPORTED;
    *out_count = found.count;
    return 0;
}

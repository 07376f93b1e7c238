/* SPDX-License-Identifier: Apache-2.0 */
/* Asks how many there are, makes room, and asks again if there are more by then. */
#include "device/nvidia/nvml_processes.h"

#include <stdlib.h>

#include "device/nvidia/nvml_quantities.h"

/* A count above this is a fault of the driver, and must not fill the memory. */
enum { TRIES = 4, ROOM_TO_SPARE = 8, COUNT_MAX = 1 << 16 };

/* Room for either layout. */
union entries {
    void *memory;
    struct nvml_process *now;
    struct nvml_process_v1 *once;
};

static int ask(const struct nvml_calls *call, struct nvml_device *device, unsigned *count,
               union entries entries)
{
    if (call->processes != NULL)
        return call->processes(device, count, entries.now);
    return call->processes_v1 != NULL ? call->processes_v1(device, count, entries.once)
                                      : NVML_FUNCTION_NOT_FOUND;
}

static struct device_process translate(const struct nvml_calls *call, union entries entries, unsigned place)
{
    if (call->processes != NULL)
        return (struct device_process){.pid = (pid_t)entries.now[place].pid,
                                       .memory_bytes = entries.now[place].memory_bytes};
    return (struct device_process){.pid = (pid_t)entries.once[place].pid,
                                   .memory_bytes = entries.once[place].memory_bytes};
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
        return FLY_EREAD;
    }
}

int nvml_processes_read(const struct nvml_calls *call, struct nvml_device *device,
                        struct device_process *processes, size_t maximum, size_t *out_count)
{
    union entries entries = {.memory = NULL};
    unsigned room = 0, count = 0;
    int code = ask(call, device, &count, entries);

    for (int i = 0; i < TRIES && code == NVML_INSUFFICIENT_SIZE && count <= COUNT_MAX; i++) {
        void *memory = realloc(entries.memory, (count + (size_t)ROOM_TO_SPARE) * sizeof *entries.now);

        if (memory == NULL) {
            free(entries.memory);
            return FLY_ENOMEM;
        }
        entries.memory = memory;
        room = count + ROOM_TO_SPARE;
        count = room;
        code = ask(call, device, &count, entries);
    }
    if (count > room)
        count = room;
    if (code == NVML_SUCCESS) {
        *out_count = count < maximum ? count : maximum;
        for (unsigned i = 0; i < *out_count; i++)
            processes[i] = translate(call, entries, i);
    }
    free(entries.memory);
    return error_code(code);
}

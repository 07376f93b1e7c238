/* SPDX-License-Identifier: Apache-2.0 */
/* What each process kept busy, and the instances of a GPU that MIG has divided. */
#include <stdlib.h>

#include "device/nvidia/nvml_processes.h"
#include "device/nvidia/nvml_quantities.h"

enum { SAMPLES_MAX = 1 << 16, PERCENT_MAX = 100, MIB_BITS = 20 };

/* Drivers have given samples of no process, of more than the whole, and of times past. */
static bool is_plausible(const struct nvml_process_utilization *sample, int64_t since_us)
{
    return sample->pid != 0 && sample->sm <= PERCENT_MAX && sample->memory <= PERCENT_MAX &&
           sample->timestamp_us > (unsigned long long)since_us && sample->timestamp_us <= INT64_MAX;
}

static size_t translate(const struct nvml_process_utilization *given, unsigned count, int64_t since_us,
                        struct device_use_sample *samples, size_t maximum)
{
    size_t kept = 0;

    for (unsigned i = 0; i < count && kept < maximum; i++) {
        if (is_plausible(&given[i], since_us))
            samples[kept++] = (struct device_use_sample){.pid = (pid_t)given[i].pid,
                                                         .at_us = (int64_t)given[i].timestamp_us,
                                                         .sm_percent = (uint8_t)given[i].sm,
                                                         .memory_percent = (uint8_t)given[i].memory};
    }
    return kept;
}

/* The driver says how many it may have, not how many it has, so that asking once more is enough. */
static int read_many(const struct nvml_calls *call, struct nvml_device *device, unsigned count,
                     int64_t since_us, struct device_use_sample *samples, size_t maximum, size_t *out_count)
{
    struct nvml_process_utilization *given;
    unsigned room = count;
    int code;

    if (count > SAMPLES_MAX)
        return NVML_UNKNOWN;
    given = calloc(room, sizeof *given);
    if (given == NULL)
        return NVML_MEMORY;
    code = call->use(device, given, &count, (unsigned long long)since_us);
    if (code == NVML_SUCCESS)
        *out_count = translate(given, count < room ? count : room, since_us, samples, maximum);
    free(given);
    return code;
}

enum reading_state nvml_use_read(const struct nvml_calls *call, struct nvml_device *device, int64_t since_us,
                                 struct device_use_sample *samples, size_t maximum, size_t *out_count)
{
    struct nvml_process_utilization given[DEVICE_PROCESSES_AT_ONCE];
    unsigned count = DEVICE_PROCESSES_AT_ONCE;
    size_t kept = 0;
    int code;

    if (call->use == NULL)
        return READING_MISSING;
    code = call->use(device, given, &count, (unsigned long long)since_us);
    if (code == NVML_INSUFFICIENT_SIZE)
        code = read_many(call, device, count, since_us, samples, maximum, &kept);
    else if (code == NVML_SUCCESS)
        kept = translate(given, count < DEVICE_PROCESSES_AT_ONCE ? count : DEVICE_PROCESSES_AT_ONCE, since_us,
                         samples, maximum);
    /* So the driver says that nobody kept anything busy. */
    if (code == NVML_NOT_FOUND)
        code = NVML_SUCCESS;
    if (code == NVML_SUCCESS)
        *out_count = kept;
    return nvml_reading_state(code);
}

static struct device_instance *instance_of(struct device_division *division, uint32_t id)
{
    for (size_t i = 0; i < division->instance_count; i++) {
        if (division->instances[i].id == id)
            return &division->instances[i];
    }
    if (division->instance_count == DEVICE_INSTANCES_MAX)
        return NULL;
    division->instances[division->instance_count] = (struct device_instance){.id = id};
    return &division->instances[division->instance_count++];
}

/* The driver's parts are compute instances: several may share one GPU instance, its slices and its memory. */
static void add_part(const struct nvml_calls *call, struct nvml_device *part,
                     struct device_division *division)
{
    struct nvml_device_attributes attributes = {0};
    struct device_instance *instance;
    unsigned id;

    if (call->instance_id == NULL || call->instance_id(part, &id) != NVML_SUCCESS)
        return;
    instance = instance_of(division, id);
    if (instance == NULL || call->attributes == NULL || call->attributes(part, &attributes) != NVML_SUCCESS)
        return;
    instance->slices = attributes.gpu_slices;
    instance->multiprocessors += attributes.multiprocessors;
    instance->memory_bytes = (uint64_t)attributes.memory_mib << MIB_BITS;
}

enum reading_state nvml_division_read(const struct nvml_calls *call, struct nvml_device *device,
                                      struct device_division *out_division)
{
    struct device_division division = {.divided = false};
    unsigned mode = NVML_DISABLED, pending, most = 0;
    int code = call->mig_mode != NULL ? call->mig_mode(device, &mode, &pending) : NVML_NOT_SUPPORTED;

    if (code != NVML_SUCCESS)
        return nvml_reading_state(code);
    division.divided = mode == NVML_ENABLED;
    if (call->mig_most == NULL || call->mig_most(device, &most) != NVML_SUCCESS)
        most = 0;
    if (most > DEVICE_INSTANCES_MAX)
        most = DEVICE_INSTANCES_MAX;
    division.slices = most;
    for (unsigned i = 0; division.divided && call->mig_part != NULL && i < most; i++) {
        struct nvml_device *part;

        if (call->mig_part(device, i, &part) == NVML_SUCCESS)
            add_part(call, part, &division);
    }
    *out_division = division;
    return READING_OK;
}

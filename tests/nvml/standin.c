/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver library; OLD leaves out what came with numbered names. */
#include "standin.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(result, symbol, parameters) EXPORT result symbol parameters;
NVML_FUNCTIONS(DECLARE)

EXPORT struct standin standin = {.gpus = 1,
                                 .field_type = NVML_VALUE_UNSIGNED_LONG_LONG,
                                 .architecture = NVML_HOPPER,
                                 .driver = "550.54.14",
                                 .name = "NVIDIA H100 80GB HBM3"};

struct nvml_device {
    unsigned index;
};
static struct nvml_device gpus[STANDIN_GPUS] = {{0}, {1}, {2}, {3}};

/* Counts a call; the code to return. */
static int say(enum standin_slot slot)
{
    standin.calls[slot]++;
    return standin.codes[slot];
}

/* A function with one number for an answer. */
#define ANSWER(symbol, slot, type, what)                        \
    int symbol(struct nvml_device *device, type *out)           \
    {                                                           \
        (void)device;                                           \
        *out = standin.codes[STANDIN_##slot] == 0 ? (what) : 0; \
        return say(STANDIN_##slot);                             \
    }

static int text_out(enum standin_slot slot, const char *text, char *out, unsigned bytes)
{
    if (standin.codes[slot] == 0)
        snprintf(out, bytes, "%s", text);
    return say(slot);
}

static int start(void)
{
    return say(STANDIN_init);
}

static int count_gpus(unsigned *count)
{
    *count = standin.gpus;
    return say(STANDIN_count);
}

static int handle_of(unsigned index, struct nvml_device **out)
{
    int code = say(STANDIN_handle);

    if (code == 0)
        code = standin.handle_codes[index];
    if (code == 0)
        *out = &gpus[index];
    return code;
}

int nvmlShutdown(void)
{
    return say(STANDIN_shutdown);
}

int nvmlSystemGetDriverVersion(char *version, unsigned bytes)
{
    return text_out(STANDIN_driver_version, standin.driver, version, bytes);
}

int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned bytes)
{
    (void)device;
    return text_out(STANDIN_name, standin.name, name, bytes);
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned bytes)
{
    char text[] = "GPU-00000000-1111-2222-3333-44444444444?";

    text[sizeof text - 2] = (char)('0' + device->index);
    return text_out(STANDIN_uuid, text, uuid, bytes);
}

int nvmlDeviceGetTemperature(struct nvml_device *device, unsigned sensor, unsigned *temperature_c)
{
    (void)device;
    *temperature_c = sensor == NVML_TEMPERATURE_GPU ? STANDIN_TEMPERATURE_C : 999;
    return say(STANDIN_temperature_old);
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, unsigned type, unsigned *clock_mhz)
{
    (void)device;
    *clock_mhz = type == NVML_CLOCK_MEMORY ? STANDIN_MEMORY_MHZ : STANDIN_CLOCK_MHZ;
    return say(STANDIN_clock);
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, unsigned type, unsigned *clock_mhz)
{
    (void)device;
    *clock_mhz = type == NVML_CLOCK_GRAPHICS ? STANDIN_CLOCK_MAX_MHZ : 0;
    return say(STANDIN_clock_max);
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned *lowest_mw,
                                                 unsigned *highest_mw)
{
    (void)device;
    *lowest_mw = STANDIN_LOWEST_MW;
    *highest_mw = STANDIN_HIGHEST_MW;
    return say(STANDIN_limit_range);
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    (void)device;
    *utilization = (struct nvml_utilization){.gpu = STANDIN_BUSY_PERCENT, .memory = STANDIN_MEMORY_PERCENT};
    return say(STANDIN_utilization);
}

ANSWER(nvmlDeviceGetPowerUsage, power, unsigned, STANDIN_POWER_MW)
ANSWER(nvmlDeviceGetPowerManagementLimit, limit, unsigned, STANDIN_LIMIT_MW)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, limit_default, unsigned, STANDIN_DEFAULT_MW)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, limit_enforced, unsigned, STANDIN_ENFORCED_MW)
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, throttle, unsigned long long, STANDIN_REASONS)

#ifdef OLD

int nvmlInit(void)
{
    return start();
}

int nvmlDeviceGetCount(unsigned *count)
{
    return count_gpus(count);
}

int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **out)
{
    return handle_of(index, out);
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
    pci->domain = 0, pci->bus = 0x80 + device->index, pci->device = 0;
    return say(STANDIN_pci_v2);
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *count,
                                         struct nvml_process_v1 *processes)
{
    unsigned room = *count;
    int code = say(STANDIN_processes_v1);

    (void)device;
    *count = standin.processes;
    for (unsigned i = 0; code == 0 && i < room && i < standin.processes; i++)
        processes[i] = (struct nvml_process_v1){.pid = 100 + i, .memory_bytes = i};
    return code != 0 ? code : room < standin.processes ? NVML_INSUFFICIENT_SIZE : 0;
}

#else

int nvmlInit_v2(void)
{
    return start();
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    return count_gpus(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **out)
{
    return handle_of(index, out);
}

static struct nvml_device instance = {STANDIN_GPUS}; /* of MIG, on GPU 1 */

/* Older names are there too, and are not to be called. */
int nvmlDeviceGetCount(unsigned *count)
{
    *count = 0;
    return NVML_DEPRECATED;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **out)
{
    int code = say(STANDIN_handle_by_uuid);

    if (code == 0 && strcmp(uuid, "MIG-5555") != 0)
        code = NVML_NOT_FOUND;
    *out = &instance;
    return code;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *device, struct nvml_device **out)
{
    *out = device == &instance ? &gpus[1] : NULL;
    return say(STANDIN_mig_parent);
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
    pci->domain = 1, pci->bus = 0x80 + device->index, pci->device = 0x1f;
    return say(STANDIN_pci);
}

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
    (void)device;
    *major = standin.capability_major;
    *minor = standin.capability_minor;
    return say(STANDIN_capability);
}

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
    (void)device;
    *current = standin.mig;
    *pending = 0;
    return say(STANDIN_mig_mode);
}

int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature_v1 *temperature)
{
    int code = say(STANDIN_temperature);

    (void)device;
    temperature->temperature_c = STANDIN_TEMPERATURE_C;
    if (code != 0)
        return code;
    return temperature->version == 0x0100000C ? 0 : NVML_ARGUMENT_VERSION_MISMATCH;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    (void)device;
    *memory = (struct nvml_memory){.total = (unsigned long long)STANDIN_MEMORY_GIB << 30};
    return say(STANDIN_memory);
}

ANSWER(nvmlDeviceGetMinorNumber, minor, unsigned, 7 + device->index)
ANSWER(nvmlDeviceGetArchitecture, architecture, unsigned, standin.architecture)
ANSWER(nvmlDeviceGetTotalEnergyConsumption, energy, unsigned long long, STANDIN_ENERGY_MJ)
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, throttle, unsigned long long, STANDIN_REASONS)
ANSWER(nvmlDeviceGetPersistenceMode, persistence, unsigned, NVML_ENABLED)

static unsigned field_number(unsigned id, unsigned scope)
{
    switch (id) {
    case NVML_FIELD_TOTAL_ENERGY:
    case NVML_FIELD_ENERGY:
        return scope == NVML_SCOPE_MODULE ? STANDIN_MODULE_ENERGY_MJ : STANDIN_ENERGY_MJ;
    case NVML_FIELD_POWER_INSTANT:
        return scope == NVML_SCOPE_MODULE ? STANDIN_MODULE_MW : STANDIN_INSTANT_MW;
    case NVML_FIELD_POWER_AVERAGE:
        return scope == NVML_SCOPE_MODULE ? STANDIN_MODULE_MW : STANDIN_AVERAGE_MW;
    case NVML_FIELD_POWER_LIMIT_REQUESTED:
        return STANDIN_LIMIT_MW;
    case NVML_FIELD_POWER_LIMIT_ENFORCED:
        return STANDIN_ENFORCED_MW;
    case NVML_FIELD_POWER_LIMIT_DEFAULT:
        return STANDIN_DEFAULT_MW;
    case NVML_FIELD_POWER_LIMIT_MIN:
        return STANDIN_LOWEST_MW;
    case NVML_FIELD_POWER_LIMIT_MAX:
        return STANDIN_HIGHEST_MW;
    default:
        return 0;
    }
}

static union nvml_value value_of(unsigned type, unsigned number)
{
    switch (type) {
    case NVML_VALUE_DOUBLE:
        return (union nvml_value){.d = number};
    case NVML_VALUE_UNSIGNED:
        return (union nvml_value){.ui = number};
    case NVML_VALUE_SIGNED:
        return (union nvml_value){.si = (int)number};
    default:
        return (union nvml_value){.ull = number};
    }
}

int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *fields)
{
    (void)device;
    for (int i = 0; i < count; i++) {
        struct nvml_field_value *field = &fields[i];

        field->code = standin.field_codes[field->scope_id][field->field_id];
        field->value_type = standin.field_type;
        field->value = value_of(standin.field_type, standin.empty_scopes[field->scope_id]
                                                        ? 0
                                                        : field_number(field->field_id, field->scope_id));
    }
    return say(STANDIN_fields);
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count,
                                            struct nvml_process *processes)
{
    (void)device;
    (void)processes;
    *count = 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                            struct nvml_process *processes)
{
    unsigned room = *count;
    int code = say(STANDIN_processes);

    (void)device;
    *count = standin.processes;
    for (unsigned i = 0; code == 0 && i < room && i < standin.processes; i++)
        processes[i] = (struct nvml_process){.pid = 100 + i,
                                             .memory_bytes = i == 0 ? NVML_MEMORY_UNKNOWN : 1000 * i,
                                             .gpu_instance = NVML_NO_INSTANCE};
    if (code == 0 && room < standin.processes)
        code = NVML_INSUFFICIENT_SIZE;
    standin.processes += standin.arriving;
    return code;
}

/* Older names are there too, and find nobody. */
#define NOBODY(symbol)                                                                      \
    int symbol(struct nvml_device *device, unsigned *count, struct nvml_process *processes) \
    {                                                                                       \
        (void)device;                                                                       \
        (void)processes;                                                                    \
        *count = 0;                                                                         \
        return NVML_SUCCESS;                                                                \
    }
NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v2)
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses_v2)

static int list_out(enum standin_slot slot, const struct standin_list *list, unsigned *count,
                    struct nvml_process *processes)
{
    unsigned room = *count;
    int code = say(slot);

    *count = list->count;
    for (unsigned i = 0; code == 0 && i < room && i < list->count; i++)
        processes[i] = (struct nvml_process){
            .pid = list->first_pid + i, .memory_bytes = NVML_MEMORY_UNKNOWN, .gpu_instance = list->instance};
    return code == 0 && room < list->count ? NVML_INSUFFICIENT_SIZE : code;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                             struct nvml_process *processes)
{
    (void)device;
    return list_out(STANDIN_graphics, &standin.graphics, count, processes);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
                                               struct nvml_process *processes)
{
    (void)device;
    return list_out(STANDIN_mps, &standin.mps, count, processes);
}

/* All samples, also those that are too old. */
int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
                                    unsigned *count, unsigned long long last_us)
{
    unsigned room = *count;
    int code = say(STANDIN_use);

    (void)device;
    (void)last_us;
    if (code != 0)
        return code;
    *count = standin.sample_count;
    if (room < standin.sample_count)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(samples, standin.samples, standin.sample_count * sizeof *samples);
    return standin.sample_count > 0 ? NVML_SUCCESS : NVML_NOT_FOUND;
}

static struct nvml_device parts[STANDIN_PARTS];

ANSWER(nvmlDeviceGetMaxMigDeviceCount, mig_most, unsigned, standin.part_count)
ANSWER(nvmlDeviceGetGpuInstanceId, instance_id, unsigned, standin.parts[device->index].instance)

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **out)
{
    int code = say(STANDIN_mig_part);

    (void)device;
    parts[index].index = index;
    *out = &parts[index];
    return code != 0 ? code : standin.parts[index].code;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_device_attributes *attributes)
{
    const struct standin_part *part = &standin.parts[device->index];

    *attributes = (struct nvml_device_attributes){
        .multiprocessors = part->multiprocessors, .gpu_slices = part->slices, .memory_mib = part->memory_mib};
    return say(STANDIN_attributes);
}

#endif

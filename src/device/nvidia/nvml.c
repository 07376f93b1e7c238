/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA GPUs. Opening a device settles what differs between boards and drivers, so that reading
 * its energy is one call of the driver.
 *
 * A GPU that cannot be opened stays in the list, and its readings say why. So the others keep
 * their places, and nobody mistakes a broken GPU for an idle one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/nvidia/nvml_library.h"
#include "device/nvidia/nvml_processes.h"
#include "device/nvidia/nvml_quantities.h"
#include "device/nvidia/nvml_set.h"
#include "device/nvidia/nvml_workloads.h"

struct nvml_state {
    struct nvml_library *library;
    struct nvml_device *handle; /* NULL: the driver gave none */
    struct nvml_ways ways;
};

/* Adds a clause to the note for the user. */
static void add_note(struct device_info *info, const char *clause)
{
    size_t length = strlen(info->note);

    snprintf(info->note + length, sizeof info->note - length, "%s%s", length > 0 ? "; " : "", clause);
}

/* Ends the driver's text within its buffer, whatever the driver did; empty if there is none. */
static void end_text(char *text, size_t bytes, int code)
{
    text[code == NVML_SUCCESS ? bytes - 1 : 0] = '\0';
}

static void fill_pci(const struct nvml_calls *call, struct nvml_device *handle, struct device_info *info)
{
    struct nvml_pci_info pci = {0};
    struct nvml_pci_info_v2 old = {0};
    unsigned domain, bus, device;

    if (call->pci != NULL && call->pci(handle, &pci) == NVML_SUCCESS) {
        domain = pci.domain, bus = pci.bus, device = pci.device;
    } else if (call->pci_v2 != NULL && call->pci_v2(handle, &old) == NVML_SUCCESS) {
        domain = old.domain, bus = old.bus, device = old.device;
    } else {
        return;
    }
    snprintf(info->pci, sizeof info->pci, "%08X:%02X:%02X.0", domain, bus, device);
}

/* Identifies a GPU without a UUID from the driver by its place on the bus, or by the driver's number. */
static void fill_uuid(const struct nvml_calls *call, struct nvml_device *handle, unsigned index,
                      struct device_info *info)
{
    if (handle != NULL && call->uuid != NULL)
        end_text(info->uuid, sizeof info->uuid, call->uuid(handle, info->uuid, sizeof info->uuid));
    if (info->uuid[0] == '\0' && info->pci[0] != '\0')
        snprintf(info->uuid, sizeof info->uuid, "pci-%s", info->pci);
    if (info->uuid[0] == '\0')
        snprintf(info->uuid, sizeof info->uuid, "nvidia-%u", index);
}

static void fill_identity(const struct nvml_calls *call, struct nvml_device *handle, struct device_info *info)
{
    unsigned minor;

    if (call->name != NULL)
        end_text(info->name, sizeof info->name, call->name(handle, info->name, sizeof info->name));
    fill_pci(call, handle, info);
    if (call->minor != NULL && call->minor(handle, &minor) == NVML_SUCCESS)
        info->minor = (int)minor;
}

static struct gpu_chip chip_of(const struct nvml_calls *call, struct nvml_device *handle, const char *name)
{
    struct gpu_chip chip = {.architecture = NVML_ARCHITECTURE_UNKNOWN, .name = name};

    if (call->architecture == NULL || call->architecture(handle, &chip.architecture) != NVML_SUCCESS)
        chip.architecture = NVML_ARCHITECTURE_UNKNOWN;
    if (call->capability == NULL ||
        call->capability(handle, &chip.capability_major, &chip.capability_minor) != NVML_SUCCESS)
        chip.capability_major = chip.capability_minor = 0;
    return chip;
}

static void fill_figures(struct nvml_state *state, struct device_info *info)
{
    const struct nvml_calls *call = &state->library->call;
    struct gpu_chip chip = chip_of(call, state->handle, info->name);
    const struct nvml_way *instant;
    struct reading values[QUANTITY_COUNT] = {0};

    nvml_ways_find(call, state->handle, &chip, &state->ways);
    instant = state->ways.to[QUANTITY_POWER_INSTANT];
    info->sensor = gpu_sensor_facts(&chip, instant != NULL);
    if (state->ways.to[QUANTITY_POWER_MODULE] != NULL && state->ways.to[QUANTITY_ENERGY] == NULL &&
        instant == NULL && state->ways.to[QUANTITY_POWER_AVERAGE] == NULL)
        add_note(info, "its driver tells the power of its module only, which is not the GPU's");
    nvml_ways_read(&state->ways, call, state->handle, QUANTITY_BIT(QUANTITY_MIG), values);
    info->mig = values[QUANTITY_MIG].state == READING_OK && values[QUANTITY_MIG].value == NVML_ENABLED;
    if (info->mig)
        add_note(info, "shared by MIG; its figures are those of the whole GPU");
}

/* On a GPU that MIG shares, each program has only a part of the memory. */
static void fill_memory(const struct nvml_state *state, struct device_info *info)
{
    const struct nvml_calls *call = &state->library->call;
    struct nvml_memory memory = {0};

    if (!info->mig && call->memory != NULL && call->memory(state->handle, &memory) == NVML_SUCCESS)
        info->memory_bytes = memory.total;
}

/* Prepares a GPU without a handle: every reading gives the driver's error. */
static void fill_failure(struct nvml_state *state, int code, struct device_info *info)
{
    info->denied = code == NVML_NO_PERMISSION;
    snprintf(info->note, sizeof info->note, "it cannot be opened: %s", nvml_meaning(code));
    for (int i = 0; i < QUANTITY_COUNT; i++)
        state->ways.absent[i] = (struct reading){.state = nvml_reading_state(code), .code = code};
}

static int add_device(struct nvml_library *library, unsigned index, struct device_list *list,
                      unsigned *denied, struct fly_error *out_error)
{
    struct device_info info = {.kind = DEVICE_GPU, .minor = -1, .emulated = library->emulated};
    struct nvml_state *state = calloc(1, sizeof *state);
    int nvml_code, code;

    if (state == NULL)
        return error_no_memory(out_error);
    state->library = library;
    snprintf(info.driver, sizeof info.driver, "%s", library->driver);
    nvml_code = library->call.handle(index, &state->handle);
    if (nvml_code == NVML_SUCCESS) {
        fill_identity(&library->call, state->handle, &info);
        fill_figures(state, &info);
        fill_memory(state, &info);
    } else {
        state->handle = NULL;
        fill_failure(state, nvml_code, &info);
    }
    fill_uuid(&library->call, state->handle, index, &info);
    code = device_list_add(list, &device_backend_nvml, &info, state, out_error);
    if (code < 0) {
        free(state);
        return code;
    }
    library->users++;
    *denied += info.denied;
    return 0;
}

static int nvml_open(const struct device_options *options, struct device_list *list,
                     struct fly_error *out_error)
{
    struct nvml_library *library;
    unsigned count = 0, denied = 0;
    int nvml_code, code = nvml_library_open(options->nvml_path, &library, out_error);

    if (code < 0)
        return code;
    nvml_code = library->call.count(&count);
    if (nvml_code != NVML_SUCCESS)
        code =
            error_set(out_error, nvml_code == NVML_NO_PERMISSION ? FLY_EPERM : FLY_EREAD,
                      "the NVIDIA driver does not count its GPUs: %s (NVML %d); see what 'nvidia-smi' says",
                      nvml_meaning(nvml_code), nvml_code);
    for (unsigned i = 0; i < count && code == 0; i++)
        code = add_device(library, i, list, &denied, out_error);
    nvml_library_release(library);
    if (code == 0 && denied > 0)
        code = error_set(
            out_error, FLY_EPERM,
            "%u of %u GPUs may not be opened; unless a scheduler or a container keeps them from you "
            "on purpose, 'sudo chmod a+rw /dev/nvidia*' opens them",
            denied, count);
    return code;
}

static void nvml_close(struct device *device)
{
    struct nvml_state *state = device->state;

    nvml_library_release(state->library);
    free(state);
}

static void nvml_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    const struct nvml_state *state = device->state;

    nvml_ways_read(&state->ways, &state->library->call, state->handle, wanted, values);
}

static int nvml_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                          size_t maximum, size_t *out_count)
{
    const struct nvml_state *state = device->state;

    if (state->handle == NULL)
        return device->info.denied ? FLY_EPERM : FLY_EREAD;
    return nvml_processes_read(&state->library->call, state->handle, kinds, processes, maximum, out_count);
}

static enum reading_state nvml_use(const struct device *device, int64_t since_us,
                                   struct device_use_sample *samples, size_t maximum, size_t *out_count)
{
    const struct nvml_state *state = device->state;

    if (state->handle == NULL)
        return state->ways.absent[QUANTITY_UTILIZATION].state;
    return nvml_use_read(&state->library->call, state->handle, since_us, samples, maximum, out_count);
}

static enum reading_state nvml_division(const struct device *device, struct device_division *out_division)
{
    const struct nvml_state *state = device->state;

    if (state->handle == NULL)
        return state->ways.absent[QUANTITY_MIG].state;
    return nvml_division_read(&state->library->call, state->handle, out_division);
}

/*
 * Instances have handles of their own. GPUs under them are compared by name, since equal handles
 * are not guaranteed.
 */
static bool nvml_has_instance(const struct device *device, const char *uuid)
{
    const struct nvml_state *state = device->state;
    const struct nvml_calls *call = &state->library->call;
    struct nvml_device *instance, *gpu;
    char gpu_uuid[NVML_UUID_BYTES] = "";

    if (call->handle_by_uuid == NULL || call->mig_parent == NULL || call->uuid == NULL)
        return false;
    if (call->handle_by_uuid(uuid, &instance) != NVML_SUCCESS ||
        call->mig_parent(instance, &gpu) != NVML_SUCCESS ||
        call->uuid(gpu, gpu_uuid, sizeof gpu_uuid) != NVML_SUCCESS)
        return false;
    gpu_uuid[sizeof gpu_uuid - 1] = '\0';
    return strcmp(gpu_uuid, device->info.uuid) == 0;
}

static int nvml_set(const struct device *device, enum quantity quantity, int64_t value,
                    struct reading *out_result, struct fly_error *out_error)
{
    const struct nvml_state *state = device->state;
    struct reading values[QUANTITY_COUNT] = {0};
    int code = NVML_FUNCTION_NOT_FOUND;

    if (state->handle == NULL)
        return nvml_set_error(&device->info, quantity, value, 0,
                              state->ways.absent[QUANTITY_POWER_LIMIT].code, out_error);
    code = nvml_set_value(&state->library->call, state->handle, quantity, value);
    if (code != NVML_SUCCESS)
        return nvml_set_error(&device->info, quantity, value, 0, code, out_error);
    if (quantity >= QUANTITY_COUNT) {
        *out_result = (struct reading){.state = READING_UNSUPPORTED};
        return 0;
    }
    nvml_read(device, QUANTITY_BIT(quantity), values);
    *out_result = values[quantity];
    return 0;
}

static int nvml_hold_clock(const struct device *device, enum quantity quantity, int64_t floor_mhz,
                           int64_t ceiling_mhz, struct fly_error *out_error)
{
    const struct nvml_state *state = device->state;
    int code = state->handle != NULL
                   ? nvml_hold(&state->library->call, state->handle, quantity, floor_mhz, ceiling_mhz)
                   : state->ways.absent[QUANTITY_POWER_LIMIT].code;

    return code == NVML_SUCCESS
               ? 0
               : nvml_set_error(&device->info, quantity, ceiling_mhz, floor_mhz, code, out_error);
}

static int nvml_clocks(const struct device *device, enum quantity quantity, int64_t *clocks_mhz,
                       size_t maximum, size_t *out_count)
{
    const struct nvml_state *state = device->state;
    int code;

    if (state->handle == NULL)
        return device->info.denied ? FLY_EPERM : FLY_EREAD;
    code = (quantity == QUANTITY_MEMORY_CLOCK_CEILING ? nvml_memory_clocks_read : nvml_clocks_read)(
        &state->library->call, state->handle, clocks_mhz, maximum, out_count);
    if (code == NVML_SUCCESS)
        return 0;
    switch (nvml_reading_state(code)) {
    case READING_DENIED:
        return FLY_EPERM;
    case READING_UNSUPPORTED:
    case READING_MISSING:
        return FLY_EUNSUPPORTED;
    default:
        return FLY_EREAD;
    }
}

static enum reading_state nvml_workloads(const struct device *device, struct workloads *out_workloads)
{
    const struct nvml_state *state = device->state;

    if (state->handle == NULL)
        return state->ways.absent[QUANTITY_POWER_LIMIT].state;
    return nvml_reading_state(nvml_workloads_read(&state->library->call, state->handle, out_workloads));
}

static int nvml_request_workloads(const struct device *device, const struct workload_set *wanted,
                                  struct fly_error *out_error)
{
    const struct nvml_state *state = device->state;
    int code = state->handle != NULL ? nvml_workloads_request(&state->library->call, state->handle, wanted)
                                     : state->ways.absent[QUANTITY_POWER_LIMIT].code;

    return code == NVML_SUCCESS ? 0 : nvml_workloads_error(&device->info, wanted, code, out_error);
}

const struct device_backend device_backend_nvml = {
    .name = "nvml",
    .title = "NVIDIA GPUs, through NVML",
    .kind = DEVICE_GPU,
    .open = nvml_open,
    .close = nvml_close,
    .read = nvml_read,
    .processes = nvml_processes,
    .use = nvml_use,
    .division = nvml_division,
    .has_instance = nvml_has_instance,
    .set = nvml_set,
    .hold = nvml_hold_clock,
    .clocks = nvml_clocks,
    .workloads = nvml_workloads,
    .request_workloads = nvml_request_workloads,
};

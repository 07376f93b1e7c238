/* SPDX-License-Identifier: Apache-2.0 */
/* Settles what differs between boards and drivers when a GPU is opened. */
#include "device/nvidia/nvml_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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

static void begin(struct nvml_library *library, struct nvml_state *state, struct device_info *out_info)
{
    state->library = library;
    *out_info = (struct device_info){.kind = DEVICE_GPU, .minor = -1, .emulated = library->emulated};
    snprintf(out_info->driver, sizeof out_info->driver, "%s", library->driver);
}

static void fill(struct nvml_state *state, unsigned index, int code, struct device_info *info)
{
    const struct nvml_calls *call = &state->library->call;

    if (code == NVML_SUCCESS) {
        fill_identity(call, state->handle, info);
        fill_figures(state, info);
        fill_memory(state, info);
    } else {
        state->handle = NULL;
        fill_failure(state, code, info);
    }
    fill_uuid(call, state->handle, index, info);
}

struct nvml_state *nvml_gpu_open(struct nvml_library *library, unsigned index, struct device_info *out_info)
{
    struct nvml_state *state = calloc(1, sizeof *state);

    if (state == NULL)
        return NULL;
    begin(library, state, out_info);
    fill(state, index, library->call.handle(index, &state->handle), out_info);
    return state;
}

struct nvml_state *nvml_gpu_silent(struct nvml_library *library, unsigned index, struct device_info *out_info)
{
    struct nvml_state *state = calloc(1, sizeof *state);

    if (state == NULL)
        return NULL;
    begin(library, state, out_info);
    fill(state, index, NVML_TIMEOUT, out_info);
    out_info->silent = true;
    return state;
}

int nvml_gpu_find(struct nvml_library *library, const char *pci, struct nvml_state **out_state,
                  struct device_info *out_info, struct fly_error *out_error)
{
    struct nvml_device *handle = NULL;
    struct nvml_state *state;
    int code;

    if (library->call.handle_by_pci == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the NVIDIA driver does not find the GPU '%s': it lacks the function; update it",
                         pci);
    code = library->call.handle_by_pci(pci, &handle);
    if (code == NVML_NOT_FOUND || code == NVML_INVALID_ARGUMENT)
        return 0;
    state = calloc(1, sizeof *state);
    if (state == NULL)
        return error_no_memory(out_error);
    begin(library, state, out_info);
    snprintf(out_info->pci, sizeof out_info->pci, "%s", pci);
    state->handle = handle;
    fill(state, 0, code, out_info);
    *out_state = state;
    return 0;
}

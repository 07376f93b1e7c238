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
#include "device/nvidia/nvml_apart.h"
#include "device/nvidia/nvml_gpu.h"
#include "device/nvidia/nvml_library.h"
#include "device/nvidia/nvml_processes.h"
#include "device/nvidia/nvml_quantities.h"
#include "device/nvidia/nvml_set.h"
#include "device/nvidia/nvml_workloads.h"

static int add_device(struct nvml_library *library, struct nvml_state *state, const struct device_info *info,
                      struct device_list *list, struct fly_error *out_error)
{
    int code = device_list_add(list, &device_backend_nvml, info, state, out_error);

    if (code == 0)
        library->users++;
    else
        free(state);
    return code;
}

/* Opens one GPU after the other. */
static int open_here(struct nvml_library *library, unsigned count, struct device_list *list,
                     struct fly_error *out_error)
{
    int code = 0;

    for (unsigned i = 0; i < count && code == 0; i++) {
        struct device_info info;
        struct nvml_state *state = nvml_gpu_open(library, i, &info);

        code =
            state != NULL ? add_device(library, state, &info, list, out_error) : error_no_memory(out_error);
    }
    return code;
}

/* Opens them side by side, so that one that does not answer holds up none. */
static int open_apart(struct nvml_library *library, unsigned count, double patience_s,
                      struct device_list *list, struct fly_error *out_error)
{
    struct nvml_apart *apart = calloc(1, sizeof *apart);
    int code = apart != NULL ? nvml_apart_open(library, count, patience_s, apart, out_error)
                             : error_no_memory(out_error);

    for (unsigned i = 0; code == 0 && i < apart->count; i++) {
        code = add_device(library, apart->states[i], &apart->infos[i], list, out_error);
        apart->states[i] = NULL;
    }
    if (apart != NULL)
        nvml_apart_deinit(apart);
    free(apart);
    return code;
}

/* Opens the GPU at that address alone. It is no failure if it is another driver's. */
static int open_only(struct nvml_library *library, const char *pci, struct device_list *list,
                     struct fly_error *out_error)
{
    struct device_info info;
    struct nvml_state *state = NULL;
    int code = nvml_gpu_find(library, pci, &state, &info, out_error);

    return code == 0 && state != NULL ? add_device(library, state, &info, list, out_error) : code;
}

static int open_all(struct nvml_library *library, double patience_s, struct device_list *list,
                    struct fly_error *out_error)
{
    unsigned count = 0, denied = 0;
    size_t before = list->count;
    int nvml_code = library->call.count(&count), code;

    if (nvml_code != NVML_SUCCESS)
        return error_set(
            out_error, nvml_code == NVML_NO_PERMISSION ? FLY_EPERM : FLY_EREAD,
            "the NVIDIA driver does not count its GPUs: %s (NVML %d); see what 'nvidia-smi' says",
            nvml_meaning(nvml_code), nvml_code);
    code = patience_s > 0.0 ? open_apart(library, count, patience_s, list, out_error)
                            : open_here(library, count, list, out_error);
    for (size_t i = before; i < list->count; i++)
        denied += list->devices[i].info.denied;
    if (code == 0 && denied > 0)
        code = error_set(
            out_error, FLY_EPERM,
            "%u of %u GPUs may not be opened; unless a scheduler or a container keeps them from you "
            "on purpose, 'sudo chmod a+rw /dev/nvidia*' opens them",
            denied, count);
    return code;
}

static int nvml_open(const struct device_options *options, struct device_list *list,
                     struct fly_error *out_error)
{
    struct nvml_library *library;
    int code = nvml_library_open(options->nvml_path, &library, out_error);

    if (code < 0)
        return code;
    code = options->only_pci != NULL ? open_only(library, options->only_pci, list, out_error)
                                     : open_all(library, options->patience_s, list, out_error);
    nvml_library_release(library);
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

/* Older drivers count what they keep for themselves: not told apart, but less than this share. */
static const double kept_share = 0.03;

static enum reading_state nvml_memory_used(const struct device *device, uint64_t *out_bytes)
{
    const struct nvml_state *state = device->state;
    const struct nvml_calls *call = &state->library->call;
    struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
    struct nvml_memory with_kept = {0};
    uint64_t kept;
    int code = NVML_FUNCTION_NOT_FOUND;

    if (state->handle == NULL)
        return state->ways.absent[QUANTITY_UTILIZATION].state;
    if (call->memory_v2 != NULL && call->memory_v2(state->handle, &memory) == NVML_SUCCESS) {
        *out_bytes = memory.used;
        return READING_OK;
    }
    if (call->memory != NULL)
        code = call->memory(state->handle, &with_kept);
    if (code != NVML_SUCCESS)
        return nvml_reading_state(code);
    kept = (uint64_t)(kept_share * (double)with_kept.total);
    *out_bytes = with_kept.used > kept ? with_kept.used - kept : 0;
    return READING_OK;
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
    .memory_used = nvml_memory_used,
    .division = nvml_division,
    .has_instance = nvml_has_instance,
    .set = nvml_set,
    .hold = nvml_hold_clock,
    .clocks = nvml_clocks,
    .workloads = nvml_workloads,
    .request_workloads = nvml_request_workloads,
};

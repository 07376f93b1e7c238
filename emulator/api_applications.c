/* SPDX-License-Identifier: Apache-2.0 */
/* What a scheduler sets for the work that it starts: the applications' clocks, and who may work. */
#include "emulator/getter.h"

/* Only clocks that nvmlDeviceGetSupportedMemoryClocks and its companion list. */
static bool is_supported(const struct emulated_gpu *gpu, unsigned memory_mhz, unsigned graphics_mhz)
{
    const struct emulated_board *board = gpu_board(gpu);

    return memory_mhz == board->memory_mhz && graphics_mhz >= board->idle_mhz &&
           graphics_mhz <= board->highest_mhz &&
           (board->highest_mhz - graphics_mhz) % GPU_CLOCK_STEP_MHZ == 0;
}

static int clock_call(const char *function, const struct nvml_device *device, unsigned type, bool by_default,
                      unsigned *clock_mhz)
{
    struct call call;
    int code = call_device(&call, function, device, clock_mhz != NULL && type <= NVML_CLOCK_VIDEO);

    if (code != NVML_SUCCESS)
        return code;
    if (type == NVML_CLOCK_VIDEO)
        return call_end(&call, NVML_NOT_SUPPORTED);
    if (type == NVML_CLOCK_MEMORY)
        *clock_mhz = gpu_board(call.gpu)->memory_mhz;
    else
        *clock_mhz = by_default || call.gpu->application_mhz == 0 ? gpu_board(call.gpu)->highest_mhz
                                                                  : call.gpu->application_mhz;
    return call_end(&call, NVML_SUCCESS);
}

int nvmlDeviceGetApplicationsClock(struct nvml_device *device, unsigned type, unsigned *clock_mhz)
{
    return clock_call(__func__, device, type, false, clock_mhz);
}

int nvmlDeviceGetDefaultApplicationsClock(struct nvml_device *device, unsigned type, unsigned *clock_mhz)
{
    return clock_call(__func__, device, type, true, clock_mhz);
}

/* Root may always set them; other users once root opened them. */
static int begin_clocks(struct call *call, const char *function, const struct nvml_device *device)
{
    int code = call_device(call, function, device, true);

    if (code == NVML_SUCCESS && !call->gpu->applications_open && !call_may_set(call))
        return call_end(call, NVML_NO_PERMISSION);
    return code;
}

int nvmlDeviceSetApplicationsClocks(struct nvml_device *device, unsigned memory_mhz, unsigned graphics_mhz)
{
    struct call call;
    int code = begin_clocks(&call, __func__, device);

    if (code != NVML_SUCCESS)
        return code;
    if (!is_supported(call.gpu, memory_mhz, graphics_mhz))
        return call_end(&call, NVML_INVALID_ARGUMENT);
    call.gpu->application_mhz = graphics_mhz;
    gpu_changed(call.gpu, call.now_ns);
    return call_end(&call, NVML_SUCCESS);
}

int nvmlDeviceResetApplicationsClocks(struct nvml_device *device)
{
    struct call call;
    int code = begin_clocks(&call, __func__, device);

    if (code != NVML_SUCCESS)
        return code;
    call.gpu->application_mhz = 0;
    gpu_changed(call.gpu, call.now_ns);
    return call_end(&call, NVML_SUCCESS);
}

/* These boards do not boost by themselves. */
static int restricted_code(unsigned what)
{
    return what == NVML_API_APPLICATION_CLOCKS    ? NVML_SUCCESS
           : what == NVML_API_AUTO_BOOSTED_CLOCKS ? NVML_NOT_SUPPORTED
                                                  : NVML_INVALID_ARGUMENT;
}

int nvmlDeviceGetAPIRestriction(struct nvml_device *device, unsigned what, unsigned *restricted)
{
    struct call call;
    int code = call_device(&call, __func__, device, restricted != NULL);

    if (code == NVML_SUCCESS)
        code = restricted_code(what);
    if (code == NVML_SUCCESS)
        *restricted = call.gpu->applications_open ? NVML_DISABLED : NVML_ENABLED;
    return call_end(&call, code);
}

int nvmlDeviceSetAPIRestriction(struct nvml_device *device, unsigned what, unsigned restricted)
{
    struct call call;
    int code = call_setting(&call, __func__, device, restricted <= NVML_ENABLED);

    if (code == NVML_SUCCESS)
        code = restricted_code(what);
    if (code == NVML_SUCCESS)
        call.gpu->applications_open = restricted == NVML_DISABLED;
    return call_end(&call, code);
}

static int get_mode(const struct call *call, unsigned *out_value)
{
    *out_value = call->gpu->compute_mode;
    return NVML_SUCCESS;
}

GETTER(nvmlDeviceGetComputeMode, get_mode)

/* Drivers since CUDA 8 no longer have the mode for single threads. */
int nvmlDeviceSetComputeMode(struct nvml_device *device, unsigned mode)
{
    struct call call;
    int code = call_setting(&call, __func__, device, mode <= NVML_COMPUTE_EXCLUSIVE_PROCESS);

    if (code == NVML_SUCCESS && mode == NVML_COMPUTE_EXCLUSIVE_THREAD)
        code = NVML_NOT_SUPPORTED;
    if (code == NVML_SUCCESS)
        call.gpu->compute_mode = mode;
    return call_end(&call, code);
}

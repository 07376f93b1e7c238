/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, their locks, and why they are held down. */
#include <math.h>

#include "emulator/getter.h"

enum { CLOCKS_MAX = 256 };

static const uint64_t reasons_known = NVML_REASON_IDLE | NVML_REASON_APPLICATION_CLOCKS |
                                      NVML_REASON_POWER_CAP | NVML_REASON_HARDWARE_SLOWDOWN |
                                      NVML_REASON_SOFTWARE_THERMAL | NVML_REASON_HARDWARE_THERMAL |
                                      NVML_REASON_POWER_BRAKE;

static int highest(const struct emulated_gpu *gpu, unsigned type, unsigned *out_mhz)
{
    if (type > NVML_CLOCK_VIDEO)
        return NVML_INVALID_ARGUMENT;
    *out_mhz = type == NVML_CLOCK_MEMORY ? gpu_board(gpu)->memory_mhz : gpu_board(gpu)->highest_mhz;
    return NVML_SUCCESS;
}

static unsigned present(const struct call *call, unsigned type)
{
    const struct emulated_board *board = gpu_board(call->gpu);
    double clock = history_newest(&call->gpu->history)->clock;

    if (type == NVML_CLOCK_MEMORY)
        return call->gpu->memory_highest_mhz > 0 && call->gpu->memory_highest_mhz < board->memory_mhz
                   ? call->gpu->memory_highest_mhz
                   : board->memory_mhz;
    if (clock <= 0.0)
        return board->idle_mhz > call->gpu->locked_lowest_mhz ? board->idle_mhz
                                                              : call->gpu->locked_lowest_mhz;
    return (unsigned)fmax(clock * board->highest_mhz, board->idle_mhz);
}

static int clock_call(const char *function, const struct nvml_device *device, unsigned type, bool now,
                      unsigned *clock_mhz)
{
    struct call call;
    unsigned mhz = 0;
    int code = call_device(&call, function, device, clock_mhz != NULL);

    if (code == NVML_SUCCESS)
        code = highest(call.gpu, type, &mhz);
    if (code == NVML_SUCCESS)
        *clock_mhz = now ? present(&call, type) : mhz;
    return call_end(&call, code);
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, unsigned type, unsigned *clock_mhz)
{
    return clock_call(__func__, device, type, true, clock_mhz);
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, unsigned type, unsigned *clock_mhz)
{
    return clock_call(__func__, device, type, false, clock_mhz);
}

int nvmlDeviceGetClock(struct nvml_device *device, unsigned type, unsigned id, unsigned *clock_mhz)
{
    return clock_call(__func__, device, type, id == NVML_CLOCK_CURRENT, clock_mhz);
}

/* Fills a list in two calls, as NVML does: one for the count, one for the clocks. */
static int list(struct call *call, const unsigned *clocks, unsigned found, unsigned *count,
                unsigned *out_clocks)
{
    bool fits = out_clocks != NULL && *count >= found;

    for (unsigned i = 0; fits && i < found; i++)
        out_clocks[i] = clocks[i];
    *count = found;
    return call_end(call, fits ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE);
}

int nvmlDeviceGetSupportedMemoryClocks(struct nvml_device *device, unsigned *count, unsigned *clocks_mhz)
{
    struct call call;
    int code = call_device(&call, __func__, device, count != NULL);

    return code != NVML_SUCCESS ? code : list(&call, &gpu_board(call.gpu)->memory_mhz, 1, count, clocks_mhz);
}

int nvmlDeviceGetSupportedGraphicsClocks(struct nvml_device *device, unsigned memory_mhz, unsigned *count,
                                         unsigned *clocks_mhz)
{
    struct call call;
    int code = call_device(&call, __func__, device, count != NULL);
    unsigned clocks[CLOCKS_MAX];
    unsigned found = 0;

    if (code != NVML_SUCCESS)
        return code;
    if (memory_mhz != gpu_board(call.gpu)->memory_mhz)
        return call_end(&call, NVML_NOT_FOUND);
    for (unsigned mhz = gpu_board(call.gpu)->highest_mhz;
         mhz >= gpu_board(call.gpu)->idle_mhz && found < CLOCKS_MAX; mhz -= GPU_CLOCK_STEP_MHZ)
        clocks[found++] = mhz;
    return list(&call, clocks, found, count, clocks_mhz);
}

static int lock_clocks(const char *function, const struct nvml_device *device, unsigned lowest_mhz,
                       unsigned highest_mhz)
{
    struct call call;
    int code = call_setting(&call, function, device, true);

    if (code != NVML_SUCCESS)
        return code;
    if (lowest_mhz > highest_mhz || highest_mhz == 0)
        return call_end(&call, NVML_INVALID_ARGUMENT);
    call.gpu->locked_lowest_mhz = lowest_mhz;
    call.gpu->locked_highest_mhz =
        highest_mhz > gpu_board(call.gpu)->idle_mhz ? highest_mhz : gpu_board(call.gpu)->idle_mhz;
    gpu_changed(call.gpu, call.now_ns);
    return call_end(&call, NVML_SUCCESS);
}

static int unlock_clocks(const char *function, const struct nvml_device *device)
{
    struct call call;
    int code = call_setting(&call, function, device, true);

    if (code != NVML_SUCCESS)
        return code;
    call.gpu->locked_lowest_mhz = 0;
    call.gpu->locked_highest_mhz = 0;
    gpu_changed(call.gpu, call.now_ns);
    return call_end(&call, NVML_SUCCESS);
}

int nvmlDeviceSetGpuLockedClocks(struct nvml_device *device, unsigned lowest_mhz, unsigned highest_mhz)
{
    return lock_clocks(__func__, device, lowest_mhz, highest_mhz);
}

int nvmlDeviceResetGpuLockedClocks(struct nvml_device *device)
{
    return unlock_clocks(__func__, device);
}

static int lock_memory(const char *function, const struct nvml_device *device, unsigned lowest_mhz,
                       unsigned highest_mhz)
{
    struct call call;
    int code = call_setting(&call, function, device, lowest_mhz <= highest_mhz);

    if (code != NVML_SUCCESS)
        return code;
    if (gpu_board(call.gpu)->architecture < NVML_AMPERE)
        return call_end(&call, NVML_NOT_SUPPORTED);
    call.gpu->memory_lowest_mhz = lowest_mhz;
    call.gpu->memory_highest_mhz = highest_mhz;
    return call_end(&call, NVML_SUCCESS);
}

int nvmlDeviceSetMemoryLockedClocks(struct nvml_device *device, unsigned lowest_mhz, unsigned highest_mhz)
{
    return lock_memory(__func__, device, lowest_mhz, highest_mhz);
}

int nvmlDeviceResetMemoryLockedClocks(struct nvml_device *device)
{
    return lock_memory(__func__, device, 0, 0);
}

static int reasons_call(const char *function, const struct nvml_device *device, bool now,
                        unsigned long long *reasons)
{
    struct call call;
    int code = call_device(&call, function, device, reasons != NULL);

    if (code == NVML_SUCCESS)
        *reasons = now ? history_newest(&call.gpu->history)->reasons : reasons_known;
    return call_end(&call, code);
}

int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, unsigned long long *reasons)
{
    return reasons_call(__func__, device, true, reasons);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, unsigned long long *reasons)
{
    return reasons_call(__func__, device, true, reasons);
}

int nvmlDeviceGetSupportedClocksEventReasons(struct nvml_device *device, unsigned long long *reasons)
{
    return reasons_call(__func__, device, false, reasons);
}

int nvmlDeviceGetSupportedClocksThrottleReasons(struct nvml_device *device, unsigned long long *reasons)
{
    return reasons_call(__func__, device, false, reasons);
}

int nvmlDeviceGetViolationStatus(struct nvml_device *device, unsigned policy,
                                 struct nvml_violation_time *violation)
{
    struct call call;
    int code = call_device(&call, __func__, device, violation != NULL);
    double held_s;

    if (code != NVML_SUCCESS)
        return code;
    if (policy > NVML_POLICY_THERMAL)
        return call_end(&call, NVML_NOT_SUPPORTED);
    held_s = policy == NVML_POLICY_POWER ? history_capped_s(&call.gpu->history, call.now_ns)
                                         : history_hot_s(&call.gpu->history, call.now_ns);
    *violation = (struct nvml_violation_time){
        .reference_us = (unsigned long long)(call.now_ns / 1000),
        .violation_ns = (unsigned long long)(held_s * 1e9 + 0.5),
    };
    return call_end(&call, NVML_SUCCESS);
}

/* P0 with work and without; boards of this class hardly ever leave it. */
/* clang-format off */
GETTER(nvmlDeviceGetPerformanceState, getter_zero)
GETTER(nvmlDeviceGetPowerState, getter_zero)
/* clang-format on */

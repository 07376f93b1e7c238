/* SPDX-License-Identifier: Apache-2.0 */
/* Sets limits, modes and clocks, and says what a refusal means. */
#include "device/nvidia/nvml_set.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/nvidia/nvml_quantities.h"
#include "device/refusal.h"

enum { MEMORY_CLOCKS_MAX = 64 };

static int highest_first(const void *first, const void *second)
{
    unsigned left = *(const unsigned *)first, right = *(const unsigned *)second;

    return left > right ? -1 : left < right;
}

/* Sorts a driver's list, and keeps each clock once. */
static int sort(unsigned *clocks, size_t found, int64_t *clocks_mhz, size_t maximum, size_t *out_count)
{
    size_t kept = 0;

    qsort(clocks, found, sizeof clocks[0], highest_first);
    for (size_t i = 0; i < found && kept < maximum; i++) {
        if (clocks[i] > 0 && (kept == 0 || clocks[i] != clocks_mhz[kept - 1]))
            clocks_mhz[kept++] = clocks[i];
    }
    *out_count = kept;
    return kept > 0 ? NVML_SUCCESS : NVML_NO_DATA;
}

int nvml_memory_clocks_read(const struct nvml_calls *call, struct nvml_device *handle, int64_t *clocks_mhz,
                            size_t maximum, size_t *out_count)
{
    unsigned clocks[MEMORY_CLOCKS_MAX], count = MEMORY_CLOCKS_MAX;
    int code =
        call->memory_clocks != NULL ? call->memory_clocks(handle, &count, clocks) : NVML_FUNCTION_NOT_FOUND;

    if (code != NVML_SUCCESS)
        return code;
    return sort(clocks, count < MEMORY_CLOCKS_MAX ? count : MEMORY_CLOCKS_MAX, clocks_mhz, maximum,
                out_count);
}

/* With the highest memory clock, all of the GPU's clocks are available. */
int nvml_clocks_read(const struct nvml_calls *call, struct nvml_device *handle, int64_t *clocks_mhz,
                     size_t maximum, size_t *out_count)
{
    unsigned clocks[DEVICE_CLOCKS_MAX], count = DEVICE_CLOCKS_MAX;
    int64_t memory_mhz;
    size_t one;
    int code;

    if (call->gpu_clocks == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    code = nvml_memory_clocks_read(call, handle, &memory_mhz, 1, &one);
    if (code == NVML_SUCCESS)
        code = call->gpu_clocks(handle, (unsigned)memory_mhz, &count, clocks);
    if (code != NVML_SUCCESS)
        return code;
    return sort(clocks, count < DEVICE_CLOCKS_MAX ? count : DEVICE_CLOCKS_MAX, clocks_mhz, maximum,
                out_count);
}

/* The two functions of a clock; those of the memory came with Ampere. */
static bool find_locks(const struct nvml_calls *call, enum quantity quantity,
                       nvmlDeviceSetGpuLockedClocks_function **out_lock,
                       nvmlDeviceResetGpuLockedClocks_function **out_unlock)
{
    bool is_memory = quantity == QUANTITY_MEMORY_CLOCK_CEILING;

    *out_lock = is_memory ? call->lock_memory : call->lock_clocks;
    *out_unlock = is_memory ? call->unlock_memory : call->unlock_clocks;
    return *out_lock != NULL && *out_unlock != NULL;
}

int nvml_hold(const struct nvml_calls *call, struct nvml_device *handle, enum quantity quantity,
              int64_t floor_mhz, int64_t ceiling_mhz)
{
    nvmlDeviceSetGpuLockedClocks_function *lock;
    nvmlDeviceResetGpuLockedClocks_function *unlock;
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;
    int code = NVML_SUCCESS;

    if (!find_locks(call, quantity, &lock, &unlock))
        return NVML_FUNCTION_NOT_FOUND;
    if (ceiling_mhz == 0)
        return unlock(handle);
    if (floor_mhz == 0) {
        code = (quantity == QUANTITY_MEMORY_CLOCK_CEILING ? nvml_memory_clocks_read : nvml_clocks_read)(
            call, handle, clocks_mhz, DEVICE_CLOCKS_MAX, &count);
        floor_mhz = code == NVML_SUCCESS ? clocks_mhz[count - 1] : 0;
    }
    if (floor_mhz > ceiling_mhz)
        floor_mhz = ceiling_mhz;
    return code == NVML_SUCCESS ? lock(handle, (unsigned)floor_mhz, (unsigned)ceiling_mhz) : code;
}

int nvml_set_value(const struct nvml_calls *call, struct nvml_device *handle, enum quantity quantity,
                   int64_t value)
{
    if (quantity == QUANTITY_POWER_LIMIT && call->set_limit != NULL)
        return call->set_limit(handle, (unsigned)value);
    if (quantity == QUANTITY_PERSISTENCE && call->set_persistence != NULL)
        return call->set_persistence(handle, value != 0 ? NVML_ENABLED : NVML_DISABLED);
    if (quantity == QUANTITY_CLOCK_CEILING)
        return nvml_hold(call, handle, quantity, 0, value);
    return NVML_FUNCTION_NOT_FOUND;
}

struct wording {
    char what[64], command[32]; /* "power limit to 250 W"; the option of nvidia-smi */
};

static void word_clock(enum quantity quantity, int64_t ceiling_mhz, int64_t floor_mhz, struct wording *out)
{
    bool is_memory = quantity == QUANTITY_MEMORY_CLOCK_CEILING;
    const char *clock = is_memory ? "memory" : "GPU";
    char letter = is_memory ? 'm' : 'g';

    if (ceiling_mhz == 0) {
        snprintf(out->what, sizeof out->what, "%s clock free", clock);
        snprintf(out->command, sizeof out->command, "-r%cc", letter);
        return;
    }
    if (floor_mhz != 0)
        snprintf(out->what, sizeof out->what, "%s clock to %lld to %lld MHz", clock, (long long)floor_mhz,
                 (long long)ceiling_mhz);
    else
        snprintf(out->what, sizeof out->what, "ceiling on the %s clock to %lld MHz", clock,
                 (long long)ceiling_mhz);
    snprintf(out->command, sizeof out->command, "-l%cc %lld,%lld", letter, (long long)floor_mhz,
             (long long)ceiling_mhz);
}

static void word(enum quantity quantity, int64_t value, int64_t floor_mhz, struct wording *out)
{
    if (quantity == QUANTITY_PERSISTENCE) {
        snprintf(out->what, sizeof out->what, "persistence mode to %s", value != 0 ? "on" : "off");
        snprintf(out->command, sizeof out->command, "-pm %d", value != 0);
    } else if (quantity == QUANTITY_POWER_LIMIT) {
        snprintf(out->what, sizeof out->what, "power limit to %g W", (double)value * 1e-3);
        snprintf(out->command, sizeof out->command, "-pl %g", (double)value * 1e-3);
    } else {
        word_clock(quantity, value, floor_mhz, out);
    }
}

int nvml_set_error(const struct device_info *info, enum quantity quantity, int64_t value, int64_t floor_mhz,
                   int code, struct fly_error *out_error)
{
    char attempt[96], privileged[160], look[160];
    struct wording wording;

    word(quantity, value, floor_mhz, &wording);
    snprintf(attempt, sizeof attempt, "setting the %s", wording.what);
    snprintf(privileged, sizeof privileged, "nvidia-smi -i %s %s", info->uuid, wording.command);
    snprintf(look, sizeof look, "nvidia-smi -q -i %s", info->uuid);
    return device_refused(info,
                          &(struct device_refusal){.state = nvml_reading_state(code),
                                                   .attempt = attempt,
                                                   .interface = "NVML",
                                                   .meaning = nvml_meaning(code),
                                                   .code = code,
                                                   .privileged = privileged,
                                                   .look = look},
                          out_error);
}

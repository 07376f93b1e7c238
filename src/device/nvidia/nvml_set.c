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

/* Finds the highest memory clock, with which all of the GPU's clocks are available. */
static int find_memory_clock(const struct nvml_calls *call, struct nvml_device *handle, unsigned *out_mhz)
{
    unsigned clocks[MEMORY_CLOCKS_MAX], count = MEMORY_CLOCKS_MAX;
    int code = call->memory_clocks(handle, &count, clocks);

    if (code != NVML_SUCCESS)
        return code;
    *out_mhz = 0;
    for (unsigned i = 0; i < count && i < MEMORY_CLOCKS_MAX; i++)
        *out_mhz = clocks[i] > *out_mhz ? clocks[i] : *out_mhz;
    return *out_mhz > 0 ? NVML_SUCCESS : NVML_NO_DATA;
}

int nvml_clocks_read(const struct nvml_calls *call, struct nvml_device *handle, int64_t *clocks_mhz,
                     size_t maximum, size_t *out_count)
{
    unsigned clocks[DEVICE_CLOCKS_MAX], count = DEVICE_CLOCKS_MAX, memory_mhz;
    size_t kept = 0;
    int code;

    if (call->memory_clocks == NULL || call->gpu_clocks == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    code = find_memory_clock(call, handle, &memory_mhz);
    if (code == NVML_SUCCESS)
        code = call->gpu_clocks(handle, memory_mhz, &count, clocks);
    if (code != NVML_SUCCESS)
        return code;
    if (count > DEVICE_CLOCKS_MAX)
        count = DEVICE_CLOCKS_MAX;
    qsort(clocks, count, sizeof clocks[0], highest_first);
    for (unsigned i = 0; i < count && kept < maximum; i++) {
        if (clocks[i] > 0 && (kept == 0 || clocks[i] != clocks_mhz[kept - 1]))
            clocks_mhz[kept++] = clocks[i];
    }
    *out_count = kept;
    return kept > 0 ? NVML_SUCCESS : NVML_NO_DATA;
}

static int set_ceiling(const struct nvml_calls *call, struct nvml_device *handle, int64_t ceiling_mhz)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;
    int code;

    if (call->lock_clocks == NULL || call->unlock_clocks == NULL)
        return NVML_FUNCTION_NOT_FOUND;
    if (ceiling_mhz == 0)
        return call->unlock_clocks(handle);
    code = nvml_clocks_read(call, handle, clocks_mhz, DEVICE_CLOCKS_MAX, &count);
    if (code != NVML_SUCCESS)
        return code;
    return call->lock_clocks(handle, (unsigned)clocks_mhz[count - 1], (unsigned)ceiling_mhz);
}

int nvml_set_value(const struct nvml_calls *call, struct nvml_device *handle, enum quantity quantity,
                   int64_t value)
{
    if (quantity == QUANTITY_POWER_LIMIT && call->set_limit != NULL)
        return call->set_limit(handle, (unsigned)value);
    if (quantity == QUANTITY_PERSISTENCE && call->set_persistence != NULL)
        return call->set_persistence(handle, value != 0 ? NVML_ENABLED : NVML_DISABLED);
    if (quantity == QUANTITY_CLOCK_CEILING)
        return set_ceiling(call, handle, value);
    return NVML_FUNCTION_NOT_FOUND;
}

struct wording {
    char what[64], command[32]; /* "power limit to 250 W"; the option of nvidia-smi */
};

static void word(enum quantity quantity, int64_t value, struct wording *out)
{
    if (quantity == QUANTITY_PERSISTENCE) {
        snprintf(out->what, sizeof out->what, "persistence mode to %s", value != 0 ? "on" : "off");
        snprintf(out->command, sizeof out->command, "-pm %d", value != 0);
    } else if (quantity == QUANTITY_POWER_LIMIT) {
        snprintf(out->what, sizeof out->what, "power limit to %g W", (double)value * 1e-3);
        snprintf(out->command, sizeof out->command, "-pl %g", (double)value * 1e-3);
    } else if (value == 0) {
        snprintf(out->what, sizeof out->what, "GPU clock free");
        snprintf(out->command, sizeof out->command, "-rgc");
    } else {
        snprintf(out->what, sizeof out->what, "ceiling on the GPU clock to %lld MHz", (long long)value);
        snprintf(out->command, sizeof out->command, "-lgc 0,%lld", (long long)value);
    }
}

int nvml_set_error(const struct device_info *info, enum quantity quantity, int64_t value, int code,
                   struct fly_error *out_error)
{
    char attempt[96], privileged[160], look[160];
    struct wording wording;

    word(quantity, value, &wording);
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

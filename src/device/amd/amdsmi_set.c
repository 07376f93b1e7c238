/* SPDX-License-Identifier: Apache-2.0 */
/* Sets limits and clocks of AMD's GPUs, and says what a refusal means. */
#include "device/amd/amdsmi_set.h"

#include <stdio.h>
#include <string.h>

#include "device/refusal.h"

enum { UW_PER_MW = 1000, CLOCK_STEP_MHZ = 25 };

void amdsmi_take_clocks(struct amdsmi_gpu *gpu)
{
    struct amdsmi_space space = {{0}};
    struct amdsmi_clock clock;
    amdsmi_status status = AMDSMI_FAIL_LOAD_SYMBOL;

    amdsmi_library_lock(gpu->library);
    if (gpu->library->call.clock != NULL)
        status = gpu->library->call.clock(gpu->handle, AMDSMI_CLOCK_GRAPHICS, space.bytes);
    amdsmi_library_unlock(gpu->library);
    memcpy(&clock, space.bytes, sizeof clock);
    if (status != AMDSMI_SUCCESS || clock.highest == AMDSMI_NOTHING_32 ||
        clock.highest == AMDSMI_NOTHING_16 || clock.lowest > clock.highest)
        return;
    gpu->lowest_mhz = clock.lowest;
    gpu->highest_mhz = clock.highest;
}

amdsmi_status amdsmi_clocks_read(const struct amdsmi_gpu *gpu, int64_t *clocks_mhz, size_t maximum,
                                 size_t *out_count)
{
    size_t count = 0;

    if (gpu->highest_mhz == 0)
        return AMDSMI_NOT_SUPPORTED;
    for (int64_t mhz = gpu->highest_mhz; mhz > gpu->lowest_mhz && count + 1 < maximum; mhz -= CLOCK_STEP_MHZ)
        clocks_mhz[count++] = mhz;
    if (gpu->lowest_mhz > 0 && count < maximum)
        clocks_mhz[count++] = gpu->lowest_mhz;
    *out_count = count;
    return AMDSMI_SUCCESS;
}

enum reading_state amdsmi_level_read(const struct amdsmi_gpu *gpu, int64_t *out_level)
{
    unsigned level = DEVICE_LEVEL_COUNT;
    amdsmi_status status = AMDSMI_FAIL_LOAD_SYMBOL;

    amdsmi_library_lock(gpu->library);
    if (gpu->library->call.level != NULL)
        status = gpu->library->call.level(gpu->handle, &level);
    amdsmi_library_unlock(gpu->library);
    if (status == AMDSMI_SUCCESS && level < DEVICE_LEVEL_COUNT)
        *out_level = level;
    return status != AMDSMI_SUCCESS     ? amdsmi_failed_reading(status).state
           : level < DEVICE_LEVEL_COUNT ? READING_OK
                                        : READING_UNSUPPORTED;
}

static amdsmi_status set_ceiling(const struct amdsmi_gpu *gpu, int64_t ceiling_mhz)
{
    const struct amdsmi_calls *call = &gpu->library->call;

    if (call->set_clock == NULL || call->set_level == NULL)
        return AMDSMI_FAIL_LOAD_SYMBOL;
    if (ceiling_mhz == 0)
        return call->set_level(gpu->handle, DEVICE_LEVEL_AUTO);
    return call->set_clock(gpu->handle, AMDSMI_CLOCK_GRAPHICS, AMDSMI_CLOCK_HIGHEST, (uint64_t)ceiling_mhz);
}

amdsmi_status amdsmi_set_value(const struct amdsmi_gpu *gpu, enum quantity quantity, int64_t value)
{
    const struct amdsmi_calls *call = &gpu->library->call;
    amdsmi_status status = AMDSMI_FAIL_LOAD_SYMBOL;

    amdsmi_library_lock(gpu->library);
    if (quantity == QUANTITY_POWER_LIMIT && call->set_power_cap != NULL)
        status = call->set_power_cap(gpu->handle, AMDSMI_POWER_SENSOR, (uint64_t)value * UW_PER_MW);
    else if (quantity == QUANTITY_CLOCK_CEILING)
        status = set_ceiling(gpu, value);
    else if (quantity == QUANTITY_PERFORMANCE_LEVEL && call->set_level != NULL)
        status = call->set_level(gpu->handle, (unsigned)value);
    amdsmi_library_unlock(gpu->library);
    return status;
}

struct wording {
    char what[64], command[48]; /* "power limit to 250 W"; the options of amd-smi */
};

static void word(enum quantity quantity, int64_t value, struct wording *out)
{
    if (quantity == QUANTITY_POWER_LIMIT) {
        snprintf(out->what, sizeof out->what, "power limit to %g W", (double)value * 1e-3);
        snprintf(out->command, sizeof out->command, "--power-cap %g", (double)value * 1e-3);
    } else if (quantity == QUANTITY_CLOCK_CEILING && value == 0) {
        snprintf(out->what, sizeof out->what, "GPU clock free");
        snprintf(out->command, sizeof out->command, "--perf-level AUTO");
    } else if (quantity == QUANTITY_CLOCK_CEILING) {
        snprintf(out->what, sizeof out->what, "ceiling on the GPU clock to %lld MHz", (long long)value);
        snprintf(out->command, sizeof out->command, "--clk-limit sclk max %lld", (long long)value);
    } else if (quantity == QUANTITY_PERFORMANCE_LEVEL) {
        snprintf(out->what, sizeof out->what, "performance level to %s", device_level_word(value));
        snprintf(out->command, sizeof out->command, "--perf-level %s", device_level_word(value));
    } else {
        snprintf(out->what, sizeof out->what, "%s", quantity_facts[quantity].title);
        out->command[0] = '\0';
    }
}

int amdsmi_set_error(const struct device_info *info, enum quantity quantity, int64_t value,
                     amdsmi_status status, struct fly_error *out_error)
{
    char attempt[96], privileged[160];
    struct wording wording;

    word(quantity, value, &wording);
    snprintf(attempt, sizeof attempt, "setting the %s", wording.what);
    snprintf(privileged, sizeof privileged, "amd-smi set -g %s %s", info->pci, wording.command);
    return device_refused(info,
                          &(struct device_refusal){.state = amdsmi_failed_reading(status).state,
                                                   .attempt = attempt,
                                                   .interface = "AMD SMI",
                                                   .meaning = amdsmi_meaning(status),
                                                   .code = status,
                                                   .privileged = privileged,
                                                   .look = "amd-smi metric"},
                          out_error);
}

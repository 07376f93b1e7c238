/* SPDX-License-Identifier: Apache-2.0 */
/* Finds ceilings on the clock that others set, from what a GPU shows. */
#include "knob/ceiling.h"

#include <time.h>

#include "base/error.h"
#include "base/wait.h"

enum { LOOK_NS = 10000000 };
static const double patience_s = 0.5;

/* Reasons that lower the clock by themselves: below a ceiling, nobody need have set anything then. */
static const int64_t other_reasons = THROTTLE_IDLE | THROTTLE_POWER_CAP | THROTTLE_HARDWARE |
                                     THROTTLE_SYNC_BOOST | THROTTLE_HEAT_SOFTWARE | THROTTLE_HEAT_HARDWARE |
                                     THROTTLE_POWER_BRAKE | THROTTLE_DISPLAY;

/* Returns the clock that contradicts the ceiling; 0: none does. */
static int64_t contradiction(const struct device *device, enum quantity quantity, int64_t ceiling_mhz)
{
    bool is_memory = quantity == QUANTITY_MEMORY_CLOCK_CEILING;
    enum quantity shown = is_memory ? QUANTITY_CLOCK_MEMORY : QUANTITY_CLOCK_GPU;
    struct device_reading reading;
    const struct reading *clock = &reading.values[shown], *reasons = &reading.values[QUANTITY_THROTTLE];
    bool held;

    device_read(device, &clock_real, QUANTITY_BIT(shown) | QUANTITY_BIT(QUANTITY_THROTTLE), &reading);
    if (clock->state != READING_OK)
        return 0;
    if (clock->value > ceiling_mhz + CEILING_TOLERANCE_MHZ)
        return clock->value;
    held = !is_memory && reasons->state == READING_OK &&
           (reasons->value & THROTTLE_APPLICATION_CLOCKS) != 0 && (reasons->value & other_reasons) == 0;
    return held && clock->value < ceiling_mhz - CEILING_TOLERANCE_MHZ ? clock->value : 0;
}

bool ceiling_may_stand(const struct device *device, enum quantity quantity, int64_t ceiling_mhz,
                       int64_t *out_clock_mhz)
{
    struct mono_time end = mono_after_s(mono_now(), patience_s);

    for (;;) {
        *out_clock_mhz = contradiction(device, quantity, ceiling_mhz);
        if (*out_clock_mhz == 0)
            return true;
        if (mono_elapsed_s(mono_now(), end) <= 0)
            return false;
        mono_sleep_s(LOOK_NS * 1e-9);
    }
}

int ceiling_check_free(const struct device *device, enum quantity quantity, struct fly_error *out_error)
{
    struct device_reading reading;
    const struct reading *reasons = &reading.values[QUANTITY_THROTTLE];
    int64_t level;

    if (quantity == QUANTITY_MEMORY_CLOCK_CEILING)
        return 0; /* nothing shows it */
    device_read(device, &clock_real, QUANTITY_BIT(QUANTITY_THROTTLE), &reading);
    if (device_read_level(device, &level) == READING_OK && level != DEVICE_LEVEL_AUTO)
        return error_set(
            out_error, FLY_ESTATE,
            "the clock of GPU %u is only measured: its performance level is '%s', which somebody "
            "set; 'amd-smi set -g %s --perf-level AUTO' as root gives the choice back to the "
            "driver",
            device->info.index, device_level_word(level), device->info.pci);
    if (reasons->state != READING_OK || (reasons->value & THROTTLE_APPLICATION_CLOCKS) == 0)
        return 0;
    return error_set(out_error, FLY_ESTATE,
                     "the clock of GPU %u is only measured: its driver says that a clock setting holds it, "
                     "which somebody made; 'nvidia-smi -i %s -rgc' as root lifts a lock",
                     device->info.index, device->info.uuid);
}

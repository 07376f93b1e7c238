/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of any kind: read, checked and made by the device's functions for that kind. */
#include "device/setting.h"

bool setting_equals(const struct setting *one, const struct setting *other)
{
    return one->number == other->number && one->floor_mhz == other->floor_mhz &&
           workload_equals(&one->workloads, &other->workloads);
}

enum reading_state setting_read(const struct device *device, enum quantity quantity,
                                struct setting *out_setting)
{
    struct device_reading reading;
    struct workloads workloads;
    enum reading_state state;
    int64_t level;

    if (quantity == QUANTITY_WORKLOADS) {
        state = device_read_workloads(device, &workloads);
        if (state == READING_OK)
            *out_setting = (struct setting){.workloads = workloads.requested};
        return state;
    }
    if (quantity == QUANTITY_PERFORMANCE_LEVEL) {
        state = device_read_level(device, &level);
        if (state == READING_OK)
            *out_setting = setting_number(level);
        return state;
    }
    if (quantity >= QUANTITY_COUNT)
        return READING_UNSUPPORTED;
    device_read(device, &clock_real, QUANTITY_BIT(quantity), &reading);
    if (reading.values[quantity].state == READING_OK)
        *out_setting = setting_number(reading.values[quantity].value);
    return reading.values[quantity].state;
}

static int64_t nearest_limit_mw(const struct device *device, int64_t wanted_mw)
{
    struct device_reading reading;
    const struct reading *lowest = &reading.values[QUANTITY_POWER_LIMIT_MIN],
                         *highest = &reading.values[QUANTITY_POWER_LIMIT_MAX];

    device_read(device, &clock_real,
                QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX), &reading);
    if (lowest->state != READING_OK || highest->state != READING_OK || lowest->value > highest->value)
        return wanted_mw;
    return wanted_mw < lowest->value    ? lowest->value
           : wanted_mw > highest->value ? highest->value
                                        : wanted_mw;
}

struct setting setting_nearest(const struct device *device, enum quantity quantity,
                               const struct setting *wanted)
{
    struct setting nearest = *wanted;
    struct workloads workloads;

    if (quantity == QUANTITY_POWER_LIMIT)
        nearest.number = nearest_limit_mw(device, wanted->number);
    else if (quantity == QUANTITY_WORKLOADS && device_read_workloads(device, &workloads) == READING_OK)
        nearest.workloads = workload_common(&wanted->workloads, &workloads.supported);
    return nearest;
}

int setting_check(const struct device *device, enum quantity quantity, const struct setting *setting,
                  struct fly_error *out_error)
{
    if (quantity == QUANTITY_WORKLOADS)
        return device_check_workloads(device, &setting->workloads, out_error);
    return setting_is_clock(quantity)
               ? device_check_clocks(device, quantity, setting->floor_mhz, setting->number, out_error)
               : device_check_set(device, quantity, setting->number, out_error);
}

int setting_make(const struct device *device, enum quantity quantity, const struct setting *setting,
                 struct fly_error *out_error)
{
    struct reading result;

    if (quantity == QUANTITY_WORKLOADS)
        return device_request_workloads(device, &setting->workloads, out_error);
    return setting_is_clock(quantity)
               ? device_hold_clocks(device, quantity, setting->floor_mhz, setting->number, out_error)
               : device_set(device, quantity, setting->number, &result, out_error);
}

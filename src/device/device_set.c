/* SPDX-License-Identifier: Apache-2.0 */
/* What can be set, and the checks before a driver is asked to set it. */
#include "base/error.h"
#include "device/setting.h"

/* A driver never gets a value beyond the device's own limits, nor any value if the limits are unknown. */
static int check_limit(const struct device *device, int64_t value_mw, struct fly_error *out_error)
{
    struct device_reading reading;
    const struct reading *lowest = &reading.values[QUANTITY_POWER_LIMIT_MIN],
                         *highest = &reading.values[QUANTITY_POWER_LIMIT_MAX];

    device_read(device, &clock_real,
                QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX), &reading);
    if (lowest->state != READING_OK || highest->state != READING_OK) {
        enum reading_state state = lowest->state != READING_OK ? lowest->state : highest->state;

        return error_set(out_error, state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED : FLY_EREAD,
                         "setting the power limit of GPU %u failed: its lowest and highest limits are not "
                         "known: %s; see 'flyball doctor'",
                         device->info.index, reading_state_clause(state));
    }
    if (value_mw <= 0 || value_mw < lowest->value || value_mw > highest->value || value_mw > UINT32_MAX)
        return error_set(out_error, FLY_EUSAGE,
                         "a power limit of %g W is outside the range of GPU %u; choose one from %g to %g W",
                         (double)value_mw * 1e-3, device->info.index, (double)lowest->value * 1e-3,
                         (double)highest->value * 1e-3);
    return 0;
}

int device_clocks_of(const struct device *device, enum quantity quantity, int64_t *clocks_mhz, size_t maximum,
                     size_t *out_count, struct fly_error *out_error)
{
    size_t count = 0;
    int code = device->backend->clocks != NULL
                   ? device->backend->clocks(device, quantity, clocks_mhz, maximum, &count)
                   : FLY_EUNSUPPORTED;

    *out_count = count;
    if (code == 0 && count > 0)
        return 0;
    code = code == 0 ? FLY_EUNSUPPORTED : code;
    return error_set(out_error, code,
                     "the clocks that %s %u can be held to are not known: %s; see "
                     "'nvidia-smi -q -d SUPPORTED_CLOCKS'",
                     device_kind_name(device->info.kind), device->info.index, fly_error_sentence(code));
}

int device_clocks(const struct device *device, int64_t *clocks_mhz, size_t maximum, size_t *out_count,
                  struct fly_error *out_error)
{
    return device_clocks_of(device, QUANTITY_CLOCK_CEILING, clocks_mhz, maximum, out_count, out_error);
}

/* Drivers round the memory's few clocks; the GPU's ceiling must be one that they need not change much. */
static int check_range(const struct device *device, enum quantity quantity, int64_t floor_mhz,
                       int64_t ceiling_mhz, struct fly_error *out_error)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX] = {0}, lowest_mhz;
    size_t count = 0;
    int code = device_clocks_of(device, quantity, clocks_mhz, DEVICE_CLOCKS_MAX, &count, out_error);

    if (code < 0)
        return code;
    lowest_mhz = count > 0 && quantity == QUANTITY_CLOCK_CEILING ? clocks_mhz[count - 1] : 1;
    if (ceiling_mhz < lowest_mhz || ceiling_mhz > clocks_mhz[0])
        return error_set(out_error, FLY_EUSAGE,
                         "a ceiling of %lld MHz is outside the clocks of GPU %u; choose one from %lld to "
                         "%lld MHz",
                         (long long)ceiling_mhz, device->info.index, (long long)lowest_mhz,
                         (long long)clocks_mhz[0]);
    if (floor_mhz < 0 || floor_mhz > ceiling_mhz)
        return error_set(out_error, FLY_EUSAGE,
                         "a floor of %lld MHz under a clock of GPU %u cannot be above its ceiling of %lld "
                         "MHz; choose a lower one",
                         (long long)floor_mhz, device->info.index, (long long)ceiling_mhz);
    return 0;
}

static bool takes_number(const struct device *device, enum quantity quantity)
{
    return quantity == QUANTITY_CLOCK_CEILING && device->backend->set != NULL;
}

int device_check_clocks(const struct device *device, enum quantity quantity, int64_t floor_mhz,
                        int64_t ceiling_mhz, struct fly_error *out_error)
{
    bool holds = device->backend->hold != NULL;

    if (!holds && (floor_mhz != 0 || !takes_number(device, quantity)))
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "setting the %s of %s %u failed: through '%s' it cannot be set; NVML can",
            quantity_facts[takes_number(device, quantity) ? QUANTITY_CLOCK_FLOOR : quantity].title,
            device_kind_name(device->info.kind), device->info.index, device->backend->name);
    if (ceiling_mhz == 0 && floor_mhz == 0)
        return 0; /* frees it, which is always allowed */
    return check_range(device, quantity, floor_mhz, ceiling_mhz, out_error);
}

int device_hold_clocks(const struct device *device, enum quantity quantity, int64_t floor_mhz,
                       int64_t ceiling_mhz, struct fly_error *out_error)
{
    struct reading result;
    int code = device_check_clocks(device, quantity, floor_mhz, ceiling_mhz, out_error);

    if (code < 0)
        return code;
    if (floor_mhz == 0 && takes_number(device, quantity))
        return device->backend->set(device, quantity, ceiling_mhz, &result, out_error);
    return device->backend->hold(device, quantity, floor_mhz, ceiling_mhz, out_error);
}

/* Nobody may leave a level that comes with clocks of its own: they could not be put back. */
static int check_level(const struct device *device, int64_t value, struct fly_error *out_error)
{
    int64_t now;
    enum reading_state state = device_read_level(device, &now);

    if (state != READING_OK)
        return error_set(
            out_error, state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED : FLY_EREAD,
            "setting the performance level of GPU %u failed: it is not known: %s; AMD's GPUs have "
            "one",
            device->info.index, reading_state_clause(state));
    if (!device_level_is_settable(value))
        return error_set(
            out_error, FLY_EUSAGE,
            "the performance level '%s' of GPU %u cannot be set, since it comes with clocks of its "
            "own; choose auto, low or high",
            device_level_word(value), device->info.index);
    return 0;
}

int device_check_set(const struct device *device, enum quantity quantity, int64_t value,
                     struct fly_error *out_error)
{
    if (device->backend->set == NULL || (QUANTITY_BIT(quantity) & QUANTITIES_SETTABLE) == 0 ||
        quantity == QUANTITY_WORKLOADS)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "setting the %s of %s %u failed: through '%s' nothing can be set; NVML and AMD SMI can",
            quantity_facts[quantity].title, device_kind_name(device->info.kind), device->info.index,
            device->backend->name);
    if (quantity == QUANTITY_POWER_LIMIT)
        return check_limit(device, value, out_error);
    if (setting_is_clock(quantity))
        return device_check_clocks(device, quantity, 0, value, out_error);
    if (quantity == QUANTITY_PERFORMANCE_LEVEL)
        return check_level(device, value, out_error);
    if (value != 0 && value != 1)
        return error_set(out_error, FLY_EUSAGE, "the %s is 0 or 1, and not %lld; choose one of them",
                         quantity_facts[quantity].title, (long long)value);
    return 0;
}

int device_set(const struct device *device, enum quantity quantity, int64_t value, struct reading *out_result,
               struct fly_error *out_error)
{
    int code = device_check_set(device, quantity, value, out_error);

    if (code == 0 && quantity == QUANTITY_MEMORY_CLOCK_CEILING) {
        code = device->backend->hold(device, quantity, 0, value, out_error);
        if (code == 0)
            *out_result = (struct reading){.state = READING_UNSUPPORTED};
        return code;
    }
    return code < 0 ? code : device->backend->set(device, quantity, value, out_result, out_error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/way/operation.h"

#include <string.h>

#include "base/error.h"

#define OPERATION_FACTS(name, text, parameter) {text, parameter},
const struct operation_facts operation_facts[OPERATION_COUNT] = {OPERATION_MAP(OPERATION_FACTS)};

/* A ceiling without a floor holds the clock between the lowest possible one and itself. */
static int hold_clock(const struct device *device, enum quantity quantity, const struct setting *value,
                      struct operation_call *call, struct fly_error *out_error)
{
    bool is_memory = quantity == QUANTITY_MEMORY_CLOCK_CEILING, resets = value->number == 0;
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;
    int code = 0;

    if (is_memory)
        call->operation = resets ? OPERATION_RESET_MEM_LOCKED_CLOCKS : OPERATION_SET_MEM_LOCKED_CLOCKS;
    else
        call->operation = resets ? OPERATION_RESET_GPU_LOCKED_CLOCKS : OPERATION_SET_GPU_LOCKED_CLOCKS;
    call->min_clock_mhz = value->floor_mhz;
    call->max_clock_mhz = value->number;
    if (resets || value->floor_mhz != 0)
        return 0;
    code = device_clocks_of(device, quantity, clocks_mhz, DEVICE_CLOCKS_MAX, &count, out_error);
    if (code == 0 && count > 0)
        call->min_clock_mhz = clocks_mhz[count - 1] < value->number ? clocks_mhz[count - 1] : value->number;
    return code;
}

int operation_for(const struct device *device, enum quantity quantity, const struct setting *value,
                  struct operation_call *out_call, struct fly_error *out_error)
{
    struct operation_call call = {.gpu = &device->info};
    int code = 0;

    switch (quantity) {
    case QUANTITY_POWER_LIMIT:
        call.operation = OPERATION_SET_POWER_LIMIT;
        call.limit_mw = value->number;
        break;
    case QUANTITY_PERSISTENCE:
        call.operation = OPERATION_SET_PERSISTENCE_MODE;
        call.enabled = value->number;
        break;
    case QUANTITY_CLOCK_CEILING:
    case QUANTITY_MEMORY_CLOCK_CEILING:
        code = hold_clock(device, quantity, value, &call, out_error);
        break;
    default:
        return error_set(out_error, FLY_EUNSUPPORTED, "the %s of GPU %u can be set by its driver alone",
                         quantity_facts[quantity].title, device->info.index);
    }
    if (code == 0)
        *out_call = call;
    return code;
}

int operation_find(const char *name)
{
    int i = 0;

    while (i < OPERATION_COUNT && strcmp(operation_facts[i].name, name) != 0)
        i++;
    return i < OPERATION_COUNT ? i : -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/way/operation.h"

#include <string.h>

#include "base/error.h"

#define OPERATION_FACTS(name, text, parameter) {text, parameter},
const struct operation_facts operation_facts[OPERATION_COUNT] = {OPERATION_MAP(OPERATION_FACTS)};

/* A ceiling holds the clock between the lowest possible one and itself. */
static int hold_clock(const struct device *device, int64_t ceiling_mhz, struct operation_call *call,
                      struct fly_error *out_error)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;
    int code = 0;

    call->operation = ceiling_mhz == 0 ? OPERATION_RESET_GPU_LOCKED_CLOCKS : OPERATION_SET_GPU_LOCKED_CLOCKS;
    if (ceiling_mhz != 0)
        code = device_clocks(device, clocks_mhz, DEVICE_CLOCKS_MAX, &count, out_error);
    if (code == 0 && count > 0)
        call->min_clock_mhz = clocks_mhz[count - 1];
    call->max_clock_mhz = ceiling_mhz;
    return code;
}

int operation_for(const struct device *device, enum quantity quantity, int64_t value,
                  struct operation_call *out_call, struct fly_error *out_error)
{
    struct operation_call call = {.gpu = &device->info};
    int code = 0;

    switch (quantity) {
    case QUANTITY_POWER_LIMIT:
        call.operation = OPERATION_SET_POWER_LIMIT;
        call.limit_mw = value;
        break;
    case QUANTITY_PERSISTENCE:
        call.operation = OPERATION_SET_PERSISTENCE_MODE;
        call.enabled = value;
        break;
    case QUANTITY_CLOCK_CEILING:
        code = hold_clock(device, value, &call, out_error);
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

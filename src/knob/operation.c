/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/operation.h"

#include <string.h>

#include "base/error.h"

#define OPERATION_FACTS(name, text, parameter) {text, parameter},
const struct operation_facts operation_facts[OPERATION_COUNT] = {OPERATION_MAP(OPERATION_FACTS)};

int operation_for(const struct device *device, enum quantity quantity, int64_t value,
                  struct operation_call *out_call, struct fly_error *out_error)
{
    struct operation_call call = {.gpu = &device->info};

    switch (quantity) {
    case QUANTITY_POWER_LIMIT:
        call.operation = OPERATION_SET_POWER_LIMIT;
        call.limit_mw = value;
        break;
    case QUANTITY_PERSISTENCE:
        call.operation = OPERATION_SET_PERSISTENCE_MODE;
        call.enabled = value;
        break;
    default:
        return error_set(out_error, FLY_EUNSUPPORTED, "the %s of GPU %u can be set by its driver alone",
                         quantity_facts[quantity].title, device->info.index);
    }
    *out_call = call;
    return 0;
}

int operation_find(const char *name)
{
    int i = 0;

    while (i < OPERATION_COUNT && strcmp(operation_facts[i].name, name) != 0)
        i++;
    return i < OPERATION_COUNT ? i : -1;
}

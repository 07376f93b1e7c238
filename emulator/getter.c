/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/getter.h"

int getter_call(const char *function, const struct nvml_device *device, unsigned *out_value, getter *get)
{
    struct call call;
    int code = call_device(&call, function, device, out_value != NULL);
    unsigned value = 0;

    if (code == NVML_SUCCESS)
        code = get(&call, &value);
    if (code == NVML_SUCCESS)
        *out_value = value;
    return call_end(&call, code);
}

int getter_zero(const struct call *call, unsigned *out_value)
{
    (void)call;
    *out_value = 0;
    return NVML_SUCCESS;
}

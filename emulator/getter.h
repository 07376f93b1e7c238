/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_GETTER_H
#define FLYBALL_EMULATOR_GETTER_H

#include "emulator/api.h"
#include "emulator/call.h"

/* Functions of NVML that return one number: each needs only a row of a table. */

/* Computes a row's number; returns NVML_SUCCESS or another code. */
typedef int getter(const struct call *call, unsigned *out_value);

int getter_call(const char *function, const struct nvml_device *device, unsigned *out_value, getter *get);

/* Defines the function `symbol` with a getter. */
#define GETTER(symbol, get)                                     \
    int symbol(struct nvml_device *device, unsigned *out_value) \
    {                                                           \
        return getter_call(#symbol, device, out_value, get);    \
    }

/* For functions that truly return 0 on every emulated board. */
getter getter_zero;

#endif

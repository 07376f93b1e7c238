/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_GETTER_H
#define FLYBALL_EMULATOR_GETTER_H

#include "emulator/api.h"
#include "emulator/call.h"

/* Functions of NVML that give one number: a row of a table is all they need. */

/* What a row computes: the number, and NVML_SUCCESS or the code that stands in its place. */
typedef int getter(const struct call *call, unsigned *out_value);

int getter_call(const char *function, const struct nvml_device *device, unsigned *out_value, getter *get);

/* Defines the function `symbol` by a getter. */
#define GETTER(symbol, get)                                     \
    int symbol(struct nvml_device *device, unsigned *out_value) \
    {                                                           \
        return getter_call(#symbol, device, out_value, get);    \
    }

/* The answer of functions that no emulated board supports. */
getter getter_not_supported;

/* An answer of 0 that is true of every emulated board. */
getter getter_zero;

#endif

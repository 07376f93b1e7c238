/* SPDX-License-Identifier: Apache-2.0 */
/* What no emulated board has: one answer for all of it. */
#include "emulator/api.h"
#include "emulator/call.h"

/* None of these functions looks at what else it was given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ANSWER(result, symbol, parameters)                    \
    result symbol parameters                                  \
    {                                                         \
        struct call call;                                     \
        int code = call_device(&call, #symbol, device, true); \
                                                              \
        if (code == NVML_SUCCESS)                             \
            code = NVML_NOT_SUPPORTED;                        \
        return call_end(&call, code);                         \
    }
NVML_UNSUPPORTED_FUNCTIONS(ANSWER)

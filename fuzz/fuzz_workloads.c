/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of workload profiles: what is read as names or as a number is written, and reads the same again. */
#include <string.h>

#include "device/workloads.h"
#include "fuzz.h"

enum { TEXT_MAX = 1 << 11 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX], names[WORKLOAD_TEXT_MAX], hex[WORKLOAD_HEX_MAX];
    struct workload_set set, again;

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (workload_parse(text, &set)) {
        FUZZ_CHECK(workload_parse(workload_text(&set, names), &again) && workload_equals(&set, &again));
        FUZZ_CHECK(workload_parse_hex(workload_hex(&set, hex), &again) && workload_equals(&set, &again));
    }
    if (workload_parse_hex(text, &set))
        FUZZ_CHECK(strcmp(workload_hex(&set, hex), text) == 0);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that a program reports: each is one of the four events, and what is taken
 * for a step or an epoch is short and free of control characters.
 */
#include <string.h>

#include "fuzz.h"
#include "train/step_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum step_event event = step_line_event((const char *)data, size);

    FUZZ_CHECK(event <= STEP_MALFORMED);
    if (event == STEP_MALFORMED || size == 0)
        return 0;
    FUZZ_CHECK(size <= STEP_LINE_MAX && memchr(data, '\0', size) == NULL && memchr(data, '\n', size) == NULL);
    FUZZ_CHECK((event == STEP_BEGIN) == (size < 5 || memcmp(data, "epoch", 5) != 0));
    return 0;
}

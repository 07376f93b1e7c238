/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations of ISO 8601: what is accepted is in range, and what is written reads back the same. */
#include <math.h>
#include <string.h>

#include "base/text/iso_time.h"
#include "fuzz.h"

enum { BYTES_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[BYTES_MAX] = "", again[ISO_TIME_TEXT_MAX];
    struct iso_time time = {.s = 7, .nanosecond = 7}, back;
    double duration_s = -1.0;

    if (size > 0)
        memcpy(text, data, size < BYTES_MAX ? size : BYTES_MAX - 1);
    if (iso_time_parse(text, &time)) {
        FUZZ_CHECK(time.nanosecond < 1000000000);
        iso_time_format(time.s, again);
        if (strcmp(again, "unknown") != 0)
            FUZZ_CHECK(iso_time_parse(again, &back) && back.s == time.s && back.zoned);
    } else {
        FUZZ_CHECK(time.s == 7 && time.nanosecond == 7);
    }
    if (iso_duration_parse(text, &duration_s))
        FUZZ_CHECK(duration_s >= 0.0 && duration_s <= 1e10);
    else
        FUZZ_CHECK(duration_s == -1.0);
    return 0;
}

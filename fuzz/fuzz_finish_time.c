/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times to finish by: any text is refused, or gives a time within the range of years. A date alone is not
 * enough; a time of day is within two days.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/options/carbon_options.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t now_s = 1800000000, day_s = 86400, year_1_s = -62135596800,
                         year_10000_s = 253402300800;
    int64_t then_s = -7;
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!finish_time_parse(text, now_s, &then_s))
        FUZZ_CHECK(then_s == -7);
    else if (strlen(text) == 5)
        FUZZ_CHECK(then_s > now_s && then_s <= now_s + 2 * day_s);
    else
        FUZZ_CHECK(strlen(text) >= strlen("2026326T07") && then_s >= year_1_s - day_s &&
                   then_s <= year_10000_s + day_s);
    free(text);
    return 0;
}

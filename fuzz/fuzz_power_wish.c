/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and durations: what is accepted lies within the documented bounds, and means the same in plain watts
 * and plain seconds.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/options/knob_options.h"
#include "fuzz.h"

enum { TEXT_MAX = 256, HIGHEST_MW = 300000, YEAR_S = 31536000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX] = "";
    char with_unit[TEXT_MAX + 1];
    struct power_wish wish = {0}, again = {0};
    double time_s = 0;

    if (size > 0)
        memcpy(text, data, size < TEXT_MAX ? size : TEXT_MAX - 1);
    if (span_parse(text, &time_s))
        FUZZ_CHECK(isfinite(time_s) && time_s > 0 && time_s <= YEAR_S);
    if (power_wish_parse(text, &wish)) {
        FUZZ_CHECK((wish.power_w > 0) != (wish.share > 0));
        FUZZ_CHECK(wish.share <= 1 && wish.power_w <= POWER_WISH_MAX_W);
        FUZZ_CHECK(power_wish_limit_mw(&wish, HIGHEST_MW) >= 0);
        FUZZ_CHECK(wish.share > 0 || power_wish_limit_mw(&wish, HIGHEST_MW) >= 1000);
        if (wish.power_w > 0 && strpbrk(text, " Ww") == NULL)
            FUZZ_CHECK(snprintf(with_unit, sizeof with_unit, "%sW", text) > 1 &&
                       power_wish_parse(with_unit, &again) && again.power_w == wish.power_w);
    }
    return 0;
}

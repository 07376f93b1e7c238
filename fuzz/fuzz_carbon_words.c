/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options about carbon: whatever is accepted is in range, and nothing else is changed. */
#include <math.h>
#include <string.h>

#include "cli/options/carbon_options.h"
#include "fuzz.h"

enum { BYTES_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct carbon_objective objective = {.per_g = -1.0};
    struct carbon_pause pause = {.idle_w = -1.0};
    char text[BYTES_MAX] = "";
    double duration_s = -1.0;

    if (size > 0)
        memcpy(text, data, size < BYTES_MAX ? size : BYTES_MAX - 1);
    if (carbon_parse_duration(text, &duration_s))
        FUZZ_CHECK(duration_s > 0.0 && duration_s <= 367 * 86400.0);
    else
        FUZZ_CHECK(duration_s == -1.0);
    if (carbon_parse_objective(text, &objective))
        FUZZ_CHECK(objective.per_g >= 0.0 && objective.per_money >= 0.0 && objective.per_kwh >= 0.0 &&
                   objective.per_g + objective.per_money + objective.per_kwh > 0.0);
    else
        FUZZ_CHECK(objective.per_g == -1.0);
    if (carbon_parse_pause(text, &pause))
        FUZZ_CHECK(pause.allowed && pause.idle_w >= 0.0 && pause.checkpoint_s >= 0.0 &&
                   pause.least_on_s >= 0.0 && pause.least_off_s >= 0.0);
    else
        FUZZ_CHECK(pause.idle_w == -1.0);
    return 0;
}

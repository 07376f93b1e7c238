/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as JSON for simulations: refused with a reason, or points with numbers above 0, ordered by
 * ascending limits.
 */
#include <math.h>

#include "fuzz.h"
#include "sim/carbon/profile_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_source profile = {.count = 77};
    struct fly_error error = {.code = 0};
    int code = profile_source_parse("name", (const char *)data, size, &profile, &error);

    if (code < 0) {
        FUZZ_CHECK(error.code == code && error.text[0] != '\0' && profile.count == 77);
        return 0;
    }
    FUZZ_CHECK(profile.count >= 1 && profile.count <= PROFILE_SOURCE_POINTS_MAX && profile.gpus >= 1);
    for (size_t i = 0; i < profile.count; i++) {
        FUZZ_CHECK(profile.points[i].power_w > 0.0 && isfinite(profile.points[i].power_w));
        FUZZ_CHECK(profile.points[i].time_s > 0.0 && isfinite(profile.points[i].time_s));
        FUZZ_CHECK(i == 0 || profile.points[i].limit_w > profile.points[i - 1].limit_w);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saved profiles: any bytes are either refused with the file's name, and all points stay unchanged, or give
 * points with numbers above 0.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "train/tuner/saved_profile.h"
#include "train/tuner/workload_setting.h"

/* Reads it as a profile with this key, whose settings are those two. */
static void read_as(const uint8_t *data, size_t size, const struct profile_key *key, double first,
                    double second)
{
    struct fly_tuner_point points[2] = {{.limit_w = first}, {.limit_w = second}};
    struct fly_error error = {.code = 0};
    size_t read = 0, valid = 0;
    int code = profile_read_text("name", (const char *)data, size, key, points, 2, &read, &error);

    for (size_t i = 0; i < 2; i++) {
        valid += points[i].mark == FLY_TUNER_VALID;
        if (points[i].mark == FLY_TUNER_VALID)
            FUZZ_CHECK(points[i].power_w > 0.0 && points[i].time_s > 0.0 && points[i].time_error >= 0.0);
    }
    if (code == 0) {
        FUZZ_CHECK(valid == read && read >= 1);
    } else {
        FUZZ_CHECK(code == FLY_EDATA && error.code == code && valid == 0);
        FUZZ_CHECK(strncmp(error.text, "saved profile 'name'", 20) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct profile_key limits = {"A", "1", "j", 8, 1, FLY_TUNER_POWER_LIMIT, 0.0};
    static const struct profile_key workloads = {"A", "1", "j", 8, 1, FLY_TUNER_PROFILE, 0.0};

    read_as(data, size, &limits, 300.0, 275.0);
    read_as(data, size, &workloads, workload_setting(FLY_TUNER_NO_PROFILE), workload_setting(1));
    return 0;
}

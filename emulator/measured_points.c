/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "emulator/measured.h"

int measured_add(struct measured *measured, const struct fly_power_point *point, const char *path,
                 struct fly_error *out_error)
{
    size_t place = 0;
    double weight;

    while (place < measured->count && measured->points[place].limit_w != point->limit_w)
        place++;
    if (place == GPU_FIT_POINTS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s: more than %d power limits; leave some out", path,
                         GPU_FIT_POINTS_MAX);
    if (place == measured->count) {
        measured->points[measured->count] = *point;
        measured->times_seen[measured->count++] = 1;
        return 0;
    }
    weight = 1.0 / ++measured->times_seen[place];
    measured->points[place].power_w += weight * (point->power_w - measured->points[place].power_w);
    measured->points[place].time_s += weight * (point->time_s - measured->points[place].time_s);
    return 0;
}

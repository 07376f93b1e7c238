/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Your own power-limit policy: the least energy that costs at most 3 % of time against the highest limit.
 * Only the profile decides; eta does not matter.
 *
 *     cc -shared -fPIC power_policy_plugin.c $(pkg-config --cflags flyball) -o power_policy_plugin.so
 *     flyball sim job --traces DIR --gpu v100 --power-policy ./power_policy_plugin.so
 */
#include <flyball/plugin.h>

static const double max_slowdown = 1.03;

static int choose(const struct fly_power_point *points, size_t count, double eta, double max_power_w,
                  size_t *out_index)
{
    size_t highest = 0;

    (void)eta;
    (void)max_power_w;
    for (size_t i = 1; i < count; i++) {
        if (points[i].limit_w > points[highest].limit_w)
            highest = i;
    }
    *out_index = highest; /* it always keeps the bound */
    for (size_t i = 0; i < count; i++) {
        const struct fly_power_point *best = &points[*out_index];

        if (points[i].time_s <= max_slowdown * points[highest].time_s &&
            points[i].power_w * points[i].time_s < best->power_w * best->time_s)
            *out_index = i;
    }
    return 0;
}

const struct fly_power_policy fly_power_policy_plugin = {
    .abi = FLY_PLUGIN_ABI,
    .size = sizeof(struct fly_power_policy),
    .name = "least-energy",
    .version = 1,
    .choose = choose,
};

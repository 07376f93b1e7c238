/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in power-limit policy once more, as a plug-in. */
#include <flyball/plugin.h>

static int choose(const struct fly_power_point *points, size_t count, double eta, double max_power_w,
                  size_t *out_index)
{
    double least_j = 0.0;

    for (size_t i = count; i-- > 0;) { /* limits ascend in a trace; ties go to the higher one */
        double cost_j = (eta * points[i].power_w + (1.0 - eta) * max_power_w) * points[i].time_s;

        if (i == count - 1 || cost_j < least_j) {
            *out_index = i;
            least_j = cost_j;
        }
    }
    return 0;
}

const struct fly_power_policy fly_power_policy_plugin = {
    .abi = FLY_PLUGIN_ABI,
    .size = sizeof(struct fly_power_policy),
    .name = "cost-again",
    .version = 1,
    .choose = choose,
};

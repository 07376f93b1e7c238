/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/shares.h"

#include <math.h>

static bool is_ok(const struct reading *reading)
{
    return reading->state == READING_OK;
}

void shares_take(struct shares *shares, const struct reading *values, double elapsed_s, double energy_j)
{
    const struct reading *use = &values[QUANTITY_UTILIZATION], *throttle = &values[QUANTITY_THROTTLE],
                         *clock = &values[QUANTITY_CLOCK_GPU];

    shares->samples++;
    if (is_ok(use)) {
        bool idle = use->value == 0;

        shares->idle_known_s += elapsed_s;
        shares->idle_s += idle ? elapsed_s : 0.0;
        if (isfinite(energy_j)) {
            shares->idle_known_j += energy_j;
            shares->idle_j += idle ? energy_j : 0.0;
        }
    }
    if (is_ok(throttle)) {
        int64_t reasons = throttle->value;

        shares->throttle_known_s += elapsed_s;
        shares->capped_s += reasons & THROTTLE_POWER_CAP ? elapsed_s : 0.0;
        shares->heat_s += reasons & (THROTTLE_HEAT_SOFTWARE | THROTTLE_HEAT_HARDWARE) ? elapsed_s : 0.0;
        shares->brake_s += reasons & THROTTLE_POWER_BRAKE ? elapsed_s : 0.0;
        shares->held_s += reasons & THROTTLE_APPLICATION_CLOCKS ? elapsed_s : 0.0;
    }
    if (is_ok(clock)) {
        shares->clocks_mhz += (double)clock->value;
        shares->clock_samples++;
    }
}

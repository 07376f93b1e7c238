/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/device_figures.h"

#include <string.h>

#define FIGURE(name)                                   \
    {                                                  \
        SHAPE_AT(fly_device_energy, name), TOLD_NUMBER \
    }
/* Of a part that is all that is known. */
#define LEAST_FIGURE(name)                                        \
    {                                                             \
        SHAPE_AT(fly_device_energy, name), TOLD_NUMBER,           \
            TOLD_ELSE("the device answered to the end, or never") \
    }
const struct shape_field device_figures[DEVICE_FIGURES] = {
    FIGURE(energy_j),
    FIGURE(uncertainty_j),
    FIGURE(gain_error),
    FIGURE(time_s),
    FIGURE(mean_power_w),
    FIGURE(integral_j),
    FIGURE(counter_j),
    FIGURE(idle_share),
    FIGURE(idle_energy_share),
    FIGURE(capped_share),
    FIGURE(heat_share),
    FIGURE(brake_share),
    FIGURE(temperature_max_c),
    FIGURE(limit_w),
    LEAST_FIGURE(least_energy_j),
    LEAST_FIGURE(least_time_s),
};

double device_figure_of(const struct fly_device_energy *energy, const struct shape_field *figure)
{
    double value;

    memcpy(&value, (const char *)energy + figure->at, sizeof value);
    return value;
}

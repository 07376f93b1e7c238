/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/cost.h>

double fly_cost(double eta, double max_power_w, double energy_j, double time_s)
{
    return eta * energy_j + (1.0 - eta) * max_power_w * time_s;
}

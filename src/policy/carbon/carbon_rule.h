/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_RULE_H
#define FLYBALL_POLICY_CARBON_CARBON_RULE_H

#include <stddef.h>

#include "policy/carbon/carbon_hull.h"

/*
 * The published rule for carbon (Yang et al., "Chasing Low-Carbon Electricity for Practical and
 * Sustainable DNN Training", 2023): for the next period, of intensity c, take the limit with the
 * least
 *
 *     (eta * power * c + (1 - eta) * max_power * max_carbon) / throughput
 *
 * The rule looks at one period alone and knows no deadline. eta says how much time it may take,
 * but only together with max_carbon. It never goes below the limit of least energy. Pure;
 * thread-safe.
 */
struct carbon_rule {
    double eta;         /* 0 .. 1 */
    double max_carbon;  /* g/kWh */
    double max_power_w; /* of all GPUs together */
};

/* The constants as published, for one GPU: 0.24, 750 g/kWh, 300 W. */
extern const struct carbon_rule carbon_rule_original;

/* Returns an index into the profile's points; among equals that of the highest limit. */
size_t carbon_rule_choose(const struct carbon_rule *rule, const struct carbon_profile *profile,
                          double intensity_g_per_kwh);

#endif

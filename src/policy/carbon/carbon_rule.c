/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_rule.h"

const struct carbon_rule carbon_rule_original = {.eta = 0.24, .max_carbon = 750.0, .max_power_w = 300.0};

size_t carbon_rule_choose(const struct carbon_rule *rule, const struct carbon_profile *profile,
                          double intensity_g_per_kwh)
{
    double constant = (1.0 - rule->eta) * rule->max_power_w * rule->max_carbon, least = 0.0;
    size_t best = 0;

    for (size_t i = 0; i < profile->count; i++) {
        const struct carbon_point *point = &profile->points[i];
        double cost = (rule->eta * point->power_w * intensity_g_per_kwh + constant) / point->rate;

        if (i == 0 || cost <= least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

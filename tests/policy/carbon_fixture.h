/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_POLICY_CARBON_FIXTURE_H
#define FLYBALL_TESTS_POLICY_CARBON_FIXTURE_H

#include "policy/carbon/carbon_hull.h"
#include "test.h"

/* A measured power profile, and profiles as a plan wants them. */
static const struct fly_power_point a40[] = {{100, 115.8, 69.36}, {125, 125.2, 56.48}, {150, 149.6, 36.85},
                                             {175, 174.2, 27.94}, {200, 199.2, 25.19}, {225, 224.0, 24.55},
                                             {250, 244.8, 24.16}, {275, 254.4, 24.06}, {300, 259.2, 24.01}};

static inline struct carbon_profile profile_of(const struct fly_power_point *points, size_t count,
                                               double host_w, double pue)
{
    const struct carbon_surroundings surroundings = {host_w, pue};
    struct carbon_profile profile;
    struct fly_error error;

    if (carbon_profile_init(&profile, points, count, &surroundings, &error) < 0)
        fail_msg("%s", error.text);
    return profile;
}

#endif

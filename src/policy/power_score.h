/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_POWER_SCORE_H
#define FLYBALL_POLICY_POWER_SCORE_H

#include <flyball/objective.h>
#include <flyball/power_profile.h>

/* Returns the score of a measured power limit under an objective; the least is the best. Pure. */
double power_score(const struct fly_power_point *point, const struct fly_objective *objective,
                   double max_power_w);

#endif

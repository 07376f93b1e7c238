/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_OBJECTIVE_CHECK_H
#define FLYBALL_MODEL_OBJECTIVE_CHECK_H

#include <math.h>
#include <stdbool.h>

#include <flyball/objective.h>

/* What everything that chooses by an objective refuses, in the same words. Pure; thread-safe. */

/* Returns FLY_EUSAGE for an unknown kind, a bound below 1, and, for a cost, a bad eta or max_power_w. */
int objective_check(const struct fly_objective *objective, double max_power_w, struct fly_error *out_error);

/* The bound that holds: 0 stands for the usual one. */
static inline double objective_bound(const struct fly_objective *objective)
{
    return objective->max_slowdown == 0.0 ? fly_objective_usual_bound(objective->kind)
                                          : objective->max_slowdown;
}

/* "energy", "lowest-limit". */
const char *objective_kind_name(enum fly_objective_kind kind);

/* Returns whether a measured quantity is usable: finite and above 0. */
static inline bool objective_positive(double value)
{
    return isfinite(value) && value > 0.0;
}

#endif

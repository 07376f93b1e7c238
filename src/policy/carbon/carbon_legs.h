/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_LEGS_H
#define FLYBALL_POLICY_CARBON_CARBON_LEGS_H

#include "policy/carbon/carbon_schedule.h"

/* Computes with the legs of a schedule alone (carbon_schedule.h). Pure. */

/* Returns the work that the legs do, in seconds at the fastest limit. */
double carbon_legs_work(const struct carbon_legs *legs);

/*
 * Joins `first` up to a moment with `then` from there on. It picks the earliest moment for which
 * both together do exactly the work. The two have the same length, neither is empty, one does
 * less than the work and the other at least the work. `out_joined` needs room for the legs of
 * both.
 */
void carbon_legs_join(const struct carbon_legs *first, const struct carbon_legs *then, double work_s,
                      struct carbon_legs *out_joined);

/* Computes what any legs would cost, and when they would finish; at least one leg. */
struct carbon_legs_sum carbon_schedule_sum(const struct carbon_schedule_request *request,
                                           const struct carbon_legs *legs);

#endif

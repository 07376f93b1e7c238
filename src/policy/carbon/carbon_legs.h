/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_LEGS_H
#define FLYBALL_POLICY_CARBON_CARBON_LEGS_H

#include "policy/carbon/carbon_schedule.h"

/* The legs of a schedule by themselves (carbon_schedule.h). Pure. */

/* The work that they do, in seconds at the fastest limit. */
double carbon_legs_work(const struct carbon_legs *legs);

/*
 * `first` up to a moment and `then` from there on, so that both together do just the work: the earliest such
 * moment. The two are of the same length, neither is empty, and one does less than the work and one no less;
 * `out_joined` has room for the legs of both.
 */
void carbon_legs_join(const struct carbon_legs *first, const struct carbon_legs *then, double work_s,
                      struct carbon_legs *out_joined);

/* What would come of any legs; at least one. */
struct carbon_legs_sum carbon_schedule_sum(const struct carbon_schedule_request *request,
                                           const struct carbon_legs *legs);

#endif

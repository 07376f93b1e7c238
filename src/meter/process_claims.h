/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_PROCESS_CLAIMS_H
#define FLYBALL_METER_PROCESS_CLAIMS_H

#include "meter/claim.h"

/*
 * Claims the devices for this process: who it is, and where locks are, from its
 * environment. All claims of a process are of one job. What `out_claims` borrows of that stays valid while
 * nobody changes the environment.
 */
void process_claims_take(const struct device_list *list, struct identity *out_identity,
                         struct claims *out_claims);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_PROCESS_CLAIMS_H
#define FLYBALL_METER_PROCESS_CLAIMS_H

#include "meter/claim.h"

/* Fills in which process of which job this one is, by its environment and the machine's name. */
void process_identity(struct identity *out_identity);

/*
 * Claims the devices for this process. Its identity and the place of the locks come from its
 * environment. All claims of a process belong to one job. `out_claims` borrows from the
 * environment, so it stays valid only while nobody changes the environment.
 */
void process_claims_take(const struct device_list *list, struct identity *out_identity,
                         struct claims *out_claims);

#endif

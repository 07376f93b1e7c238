/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_PROFILE_MEMBERS_H
#define FLYBALL_CLI_RUN_PROFILE_MEMBERS_H

#include "cli/run/profile_result.h"
#include "shapes/table.h"

/* Adds the members that "flyball.profile/3" has beside the points. */
void profile_members_add(struct table *table, const struct profile_result *result);

#endif

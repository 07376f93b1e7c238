/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_GROUP_ROWS_H
#define FLYBALL_SIM_OPEN_GROUP_ROWS_H

#include "shapes/meaning.h"
#include "shapes/table.h"
#include "sim/group_campaign.h"

extern const struct quantities group_rows_quantities;

/*
 * The result of a campaign over groups: a row for each workload and policy, and one for all
 * workloads together. Changes compare the sums over all groups with those of the default, which is one of the
 * policies. Only groups that both completed count; the others are counted separately. To be freed by
 * table_free; NULL without memory.
 */
struct table *group_rows_of(const struct group_plan *plan, size_t workload_count,
                            const struct group_result *results);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_COLUMNS_H
#define FLYBALL_SIM_OPEN_SIM_COLUMNS_H

#include <flyball/sim.h>

#include "base/buffer.h"
#include "shapes/table.h"
#include "sim/campaign.h"
#include "sim/group_campaign.h"

/* Results as columns: struct fly_sim_table is made here, of rows and of tries. */

enum { SIM_TRIES_MAX = 16 << 20 };

/* Copies the rows. FLY_ENOMEM; the table's own error. */
int sim_columns_of(const struct table *from, struct fly_sim_table **out_table, struct fly_error *out_error);

/* The tries of a campaign as `kept` has them, a struct try_kept each. FLY_ENOMEM. */
int sim_columns_of_tries(const struct campaign_plan *plan, const struct buffer *kept,
                         struct fly_sim_table **out_table, struct fly_error *out_error);

/* The same of groups; their names are in the column group. */
int sim_columns_of_group_tries(const struct group_plan *plan, const struct buffer *kept,
                               struct fly_sim_table **out_table, struct fly_error *out_error);

/* An ordered_sink that keeps the tries; `context` is a struct buffer. FLY_ELIMIT, FLY_ENOMEM. */
int sim_columns_keep(void *context, const char *bytes, size_t count, struct fly_error *out_error);

/* How many bytes SIM_TRIES_MAX of them take: the buffer's maximum. */
size_t sim_columns_tries_bytes(void);

#endif

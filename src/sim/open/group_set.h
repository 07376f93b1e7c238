/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_GROUP_SET_H
#define FLYBALL_SIM_OPEN_GROUP_SET_H

#include "base/arena.h"
#include "base/error.h"
#include "sim/open/sim_set.h"
#include "sim/world/group_file.h"

/*
 * Adds the workload of every group's dataset to a set whose traces are open, each once, and gives in memory
 * of `arena` which is whose. FLY_EDATA with the line of a dataset that is no known job; errors as
 * sim_set_add.
 */
int group_set_open(struct sim_set *set, const struct group_file *file, struct arena *arena,
                   size_t **out_group_workloads, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_PARETO_MEMBERS_H
#define FLYBALL_CLI_VIEWS_PARETO_MEMBERS_H

#include "shapes/table.h"
#include "sim/open/pareto_result.h"

/*
 * Adds to a table of points what documents have beside its rows: the job, the objective, the
 * default, the choice, what is left out, and what a live job really saved.
 */
void pareto_members_add(struct table *table, const struct pareto_result *result);

#endif

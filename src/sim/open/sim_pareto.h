/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_PARETO_H
#define FLYBALL_SIM_OPEN_SIM_PARETO_H

#include "base/error.h"
#include "sim/open/pareto_result.h"

/* The frontier of a recorded job. */

/* Where its figures come from; borrows the directory's name. */
struct pareto_source sim_pareto_source(const char *traces);

/*
 * Chooses the best point for the result's objective. FLY_EEXHAUSTED if no batch size reaches the target, if
 * the default, by which a slowdown is measured, does not, or if no point keeps the bound.
 */
int sim_pareto_choose(struct pareto_result *result, struct fly_error *out_error);

#endif

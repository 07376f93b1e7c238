/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_PARETO_SPREAD_H
#define FLYBALL_SIM_OPEN_PARETO_SPREAD_H

#include "sim/open/pareto_result.h"

/*
 * How certain the points of a frontier are. For a recorded job nothing is known (`spreads` is
 * NULL). A change against the default has bounds only if the job's savings are known: otherwise
 * the default may have run at another time, and a drift would look like a change.
 */

/* Returns the spread of the point's batch size; a recorded job has none. */
const struct pareto_spread *pareto_spread_of(const struct pareto_result *result, size_t point);

struct pareto_range {
    double low, high; /* of the 95 % interval; NAN if not known, with the reason pareto_spread_few */
};

struct pareto_range pareto_spread_time(const struct pareto_result *result, size_t point);
struct pareto_range pareto_spread_energy(const struct pareto_result *result, size_t point);
extern const char pareto_spread_few[];

/*
 * Return the change against the default. The bounds are NAN if not known; pareto_spread_doubt
 * gives the reason.
 */
struct fly_job_range pareto_time_saving(const struct pareto_result *result, size_t point);
struct fly_job_range pareto_energy_saving(const struct pareto_result *result, size_t point);
const char *pareto_spread_doubt(const struct pareto_result *result, size_t point);

#endif

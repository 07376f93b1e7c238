/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_PARETO_SPREAD_H
#define FLYBALL_CLI_VIEWS_PARETO_SPREAD_H

#include "cli/views/pareto_result.h"

/*
 * How sure the points of a frontier are. Nothing is known of a recorded job (`spreads`
 * is NULL). A change against the default is bounded only where what the job saves is
 * known: else the default may have run at another time, and a drift be taken for a change.
 */

/* Of the point's batch size; a recorded job has none. */
const struct pareto_spread *pareto_spread_of(const struct pareto_result *result, size_t point);

struct pareto_range {
    double low, high; /* of the 95 % interval; NAN where not known, for the reason of pareto_spread_few */
};

struct pareto_range pareto_spread_time(const struct pareto_result *result, size_t point);
struct pareto_range pareto_spread_energy(const struct pareto_result *result, size_t point);
extern const char pareto_spread_few[];

/* Against the default; the bounds are NAN where they are not known, for this reason. */
struct saving pareto_time_saving(const struct pareto_result *result, size_t point);
struct saving pareto_energy_saving(const struct pareto_result *result, size_t point);
const char *pareto_spread_doubt(const struct pareto_result *result, size_t point);

#endif

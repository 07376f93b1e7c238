/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_ORACLE_H
#define FLYBALL_SIM_WORLD_ORACLE_H

#include <stddef.h>

#include "base/error.h"
#include "sim/world/workload.h"

/*
 * The best choice, for one who can see the traces: the (batch size, power limit) with the least
 * expected cost of a recurrence. Regret is measured against it.
 *
 * If the job's objective bounds the slowdown, it is the best of those whose expected time is at
 * most so much longer than that of the default batch size at its highest limit. A default that never
 * reaches the target bounds nothing.
 *
 * A recurrence trains until a run reaches its target; runs are drawn evenly. If r of n runs reach
 * it, in m epochs on average, and a run may take at most E epochs, the expected epochs are m + (n
 * - r) / r * E.
 */
struct optimum {
    size_t batch;
    size_t point;
    double cost_j; /* expected, of one recurrence */
};

/*
 * Finds it. FLY_EEXHAUSTED if no batch size ever reaches the target. Among equals it takes the
 * smaller batch, then the higher limit, as power-limit selection does.
 */
int oracle_find(const struct workload *workload, struct optimum *out_optimum, struct fly_error *out_error);

/* Returns the expected time that the job's bound allows; infinite without one. */
double oracle_allowed_s(const struct workload *workload);

/* Returns the expected epochs of a recurrence at one batch size; infinite if no run reaches the target. */
double oracle_expected_epochs(const struct workload *workload, size_t batch);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_ORACLE_H
#define FLYBALL_SIM_WORLD_ORACLE_H

#include <stddef.h>

#include "base/error.h"
#include "sim/world/workload.h"

/*
 * The best choice there is, for one who sees the traces: the (batch size, power
 * limit) of least expected cost of a recurrence. What regret is measured by.
 *
 * A recurrence trains until a run reaches its target; runs are drawn evenly.
 * With r of n runs reaching it, in m epochs on average, and E the most a run
 * may take, the expected epochs are m + (n - r) / r * E.
 */
struct optimum {
    size_t batch;
    size_t point;
    double cost_j; /* expected, of one recurrence */
};

/*
 * FLY_EEXHAUSTED when no batch size ever reaches the target. Ties go to the
 * smaller batch, then to the higher limit, as in power-limit selection.
 */
int oracle_find(const struct workload *workload, struct optimum *out_optimum, struct fly_error *out_error);

/* Expected epochs of a recurrence at one batch size; infinite when no run reaches the target. */
double oracle_expected_epochs(const struct workload *workload, size_t batch);

#endif

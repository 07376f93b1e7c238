/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_EARLY_STOPPING_H
#define FLYBALL_POLICY_EARLY_STOPPING_H

#include <stdint.h>

/*
 * Early stopping: returns how many whole epochs fit below a bound on the cost, at most
 * `max_epochs`. A trial is stopped before the epoch that would cross the bound.
 *
 * bound_j   > 0, infinity for no bound
 * epoch_j   cost of one epoch in the steady state, > 0
 *
 * Exact: floor of the true quotient, not of the rounded one, so that a bound of exactly n epochs
 * allows n. Pure.
 */
uint32_t early_stopping_epochs(double bound_j, double epoch_j, uint32_t max_epochs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GRID_SETTLE_H
#define FLYBALL_MODEL_GRID_SETTLE_H

#include "model/grid_series.h"

int grid_series_settle(struct grid_series *series, struct fly_error *out_error);

/*
 * Counts as missing the periods that a settled series lacks between its others: as many as fit
 * into each gap.
 */
void grid_series_count_absent(struct grid_series *series);

#endif

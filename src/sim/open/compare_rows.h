/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_COMPARE_ROWS_H
#define FLYBALL_SIM_OPEN_COMPARE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shapes/meaning.h"
#include "shapes/table.h"
#include "sim/campaign.h"
#include "sim/open/compare_jobs.h"

/* What was compared in one scenario. */
struct compare_run {
    const char *scenario;
    const struct campaign_plan *plan; /* with horizons: those of the rows, and others of the picture */
    const struct campaign *campaign;
    const struct compare_set *sets;
    size_t set_count;
    const uint64_t *horizons; /* of the rows */
    size_t horizon_count;
    size_t rival;    /* index of the policy that the others are compared with */
    size_t standard; /* index of the default */
};

/*
 * Policies side by side: one row for every scenario, set of jobs, horizon and policy. People get the figures
 * that decide; programs get all of them. To be freed by table_free; NULL without memory.
 */
struct table *compare_rows_new(bool people);

/* Adds the rows of one scenario; `people` as above. FLY_ENOMEM. */
int compare_rows_add(struct table *table, const struct compare_run *run, bool people,
                     struct fly_error *out_error);

extern const struct quantities compare_rows_quantities;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_GRID_AMOUNT_H
#define FLYBALL_JOB_CORE_GRID_AMOUNT_H

#include <stddef.h>

#include "job/core/job.h"

/*
 * What a job's energy amounts to in its grid, by a reference (job_epoch.reference_per_kwh): grams of CO2, or
 * money. Unknown, never 0, when the reference is.
 */

/* Whether the job's grid has prices; otherwise it has intensities. */
bool job_counts_money(const struct fly_job_definition *definition);

/* Grams or money; NAN when either argument is not known. */
double job_grid_amount(double energy_j, double reference_per_kwh);

/* "0.4503 g of CO2" or "0.0012 in money", and "230 g/kWh" or "0.3 in money per kWh". */
enum { GRID_AMOUNT_MAX = 64 };
char *job_grid_amount_text(const struct fly_job_definition *definition, double amount,
                           char text[GRID_AMOUNT_MAX]);
char *job_grid_reference_text(const struct fly_job_definition *definition, double reference_per_kwh,
                              char text[GRID_AMOUNT_MAX]);

#endif

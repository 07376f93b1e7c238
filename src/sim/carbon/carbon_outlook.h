/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_CARBON_OUTLOOK_H
#define FLYBALL_SIM_CARBON_CARBON_OUTLOOK_H

#include "sim/carbon/carbon_job.h"

/*
 * What a simulated job knows of the grid: forecasts made from periods that have ended, or the
 * truth. A moment is the job's start, since 1970, plus seconds since that start.
 */

/* Returns for how many spans a worker needs room. */
size_t carbon_outlook_capacity(const struct carbon_world *world);

/* Fills worker->outlook from now to the deadline with forecasts. */
void carbon_outlook_foretell(struct carbon_worker *worker, int64_t start_s, double now_s);

/* Fills worker->outlook from the start with the truth. */
void carbon_outlook_know(struct carbon_worker *worker, int64_t start_s);

/* Returns the intensity that is forecast for the current period. */
double carbon_outlook_next(struct carbon_worker *worker, int64_t start_s, double now_s);

/* Returns the greatest intensity of periods that have ended within the last `back_s`; at least 1. */
double carbon_outlook_most(const struct grid_answer *answer, int64_t now_s, int64_t back_s);

#endif

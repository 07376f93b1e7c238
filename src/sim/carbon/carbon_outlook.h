/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_CARBON_OUTLOOK_H
#define FLYBALL_SIM_CARBON_CARBON_OUTLOOK_H

#include "sim/carbon/carbon_job.h"

/*
 * What a simulated job is told of the grid: forecasts, made from what has ended, or the
 * truth. Moments are the job's start, since 1970, and seconds since that.
 */

/* Spans that a worker needs room for. */
size_t carbon_outlook_capacity(const struct carbon_world *world);

/* Fills worker->outlook from now to the deadline by forecasts. */
void carbon_outlook_foretell(struct carbon_worker *worker, int64_t start_s, double now_s);

/* The same from the start by the truth. */
void carbon_outlook_know(struct carbon_worker *worker, int64_t start_s);

/* The intensity that is forecast for the current period. */
double carbon_outlook_next(struct carbon_worker *worker, int64_t start_s, double now_s);

/* The greatest intensity of periods that have ended since so long ago; the least there is without any. */
double carbon_outlook_most(const struct grid_answer *answer, int64_t now_s, int64_t back_s);

#endif

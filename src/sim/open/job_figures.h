/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_JOB_FIGURES_H
#define FLYBALL_SIM_OPEN_JOB_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shapes/meaning.h"
#include "shapes/table.h"
#include "sim/bootstrap.h"
#include "sim/campaign.h"
#include "sim/statistics.h"

/*
 * The figures of a campaign over recurring jobs: one row for each workload and policy, with every
 * figure's mean, standard error, p10 and p90 over the seeds, and the standard error due to the few
 * recorded runs. Figures cover the runs that completed.
 */

/* One workload and policy, over its seeds. */
struct job_cell {
    const struct workload *workload;
    const struct optimum *optimum;
    const char *policy;
    uint64_t recurrences;
    size_t seeds;
    size_t completed;                     /* completed runs */
    const struct comparison *first_ended; /* a run that ended early, or NULL */
    struct statistics figures[FIGURE_COUNT];
    const double *recordings; /* the figures' standard errors due to few recorded runs; NULL: not computed */
    uint32_t chosen_batch_size; /* most common at the end of a run */
    double chosen_limit_w;
    size_t chosen_runs; /* how many runs ended with it; 0: no run completed anything */
};

/* Computes one. `bootstrap` is zeroed where none was run. FLY_ENOMEM. */
int job_cell_make(const struct campaign_plan *plan, const struct campaign *campaign,
                  const struct bootstrap *bootstrap, size_t workload, size_t policy,
                  struct job_cell *out_cell, struct fly_error *out_error);

/* Returns the standard error of a figure due to few recorded runs; NAN if it is not known. */
double job_cell_recordings_error(const struct job_cell *cell, int figure);

/* Returns a table without rows, to be freed by table_free; NULL without memory. */
struct table *job_figures_new(void);

/* Adds the cell as a row. */
void job_figures_add(struct table *table, const struct job_cell *cell);

extern const struct quantities job_figures_quantities;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_BOOTSTRAP_H
#define FLYBALL_SIM_BOOTSTRAP_H

#include <stddef.h>

#include "sim/campaign.h"

/*
 * How certain a campaign's figures are, given how few runs were recorded.
 *
 * Seeds draw from the same recorded runs again and again, so their spread does not show how else
 * the recordings could have turned out. The nonparametric bootstrap does (Efron, "Bootstrap
 * Methods: Another Look at the Jackknife", Annals of Statistics 7, 1979): each replicate draws
 * every batch size's recorded runs anew from themselves, with replacement, and runs the
 * comparison in that world for some seeds, against that world's own optimum. The variance of
 * their mean over replicates, minus the part that comes from the seeds, is the variance due to
 * the recordings. Power and time of an epoch were measured once each, so they have no spread to
 * draw from. If all recorded runs are alike they have none either, and the figure is unknown.
 */
enum {
    BOOTSTRAP_SEEDS = 10,          /* of each at most: the plan's first */
    BOOTSTRAP_REPLICATES_MIN = 20, /* with fewer usable ones there is no figure */
};

struct bootstrap {
    double *standard_errors; /* owned: [workload][policy][figure]; NaN: not known, or with one seed */
};

/*
 * Runs the bootstrap for the finished campaign of a plan whose runs are drawn. The results do not
 * depend on the number of threads. Errors as campaign_run. Call bootstrap_free only after
 * success; it is harmless on a zeroed struct.
 */
int bootstrap_run(const struct campaign_plan *plan, const struct campaign *campaign, size_t replicates,
                  struct bootstrap *out_bootstrap, struct fly_error *out_error);

void bootstrap_free(struct bootstrap *bootstrap);

/* Returns the FIGURE_COUNT standard errors of one workload and policy; NULL if nothing was run. */
const double *bootstrap_cell(const struct campaign_plan *plan, const struct bootstrap *bootstrap,
                             size_t workload, size_t policy);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_BOOTSTRAP_H
#define FLYBALL_SIM_BOOTSTRAP_H

#include <stddef.h>

#include "sim/campaign.h"

/*
 * How certain a campaign's figures are, given how few runs were recorded.
 *
 * Seeds draw from the recorded runs again and again, so their spread says nothing
 * of how else the recordings could have turned out. The nonparametric bootstrap
 * does (Efron, "Bootstrap Methods: Another Look at the Jackknife", Annals of
 * Statistics 7, 1979): in each replicate every batch size's recorded runs are drawn
 * anew from themselves, with replacement, and the comparison runs in that world for
 * some seeds, against that world's own optimum. The variance of their mean over
 * replicates, less what the seeds alone make of it, is that of the recordings. Power
 * and time of an epoch were measured once each and have no spread to draw from; nor
 * have recorded runs that are all alike, so then nothing is known.
 */
enum {
    BOOTSTRAP_REPLICATES = 100,    /* unless told otherwise */
    BOOTSTRAP_SEEDS = 10,          /* of each at most: the plan's first */
    BOOTSTRAP_REPLICATES_MIN = 20, /* fewer usable ones give no figure */
};

struct bootstrap {
    double *standard_errors; /* owned: [workload][policy][figure]; NaN: not known, or with one seed */
};

/* `replicates` that keep the campaign's recurrences within what takes seconds: BOOTSTRAP_REPLICATES, or 0. */
size_t bootstrap_affordable(const struct campaign_plan *plan, const struct campaign *campaign);

/*
 * Over the finished campaign of a plan whose runs are drawn. The results do not
 * depend on the number of threads. Errors as campaign_run. Needs bootstrap_free
 * only after success; harmless on a zeroed struct.
 */
int bootstrap_run(const struct campaign_plan *plan, const struct campaign *campaign, size_t replicates,
                  struct bootstrap *out_bootstrap, struct fly_error *out_error);

void bootstrap_free(struct bootstrap *bootstrap);

/* The standard errors of one workload and policy, FIGURE_COUNT; NULL where nothing was run. */
const double *bootstrap_cell(const struct campaign_plan *plan, const struct bootstrap *bootstrap,
                             size_t workload, size_t policy);

#endif

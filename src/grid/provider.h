/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_PROVIDER_H
#define FLYBALL_GRID_PROVIDER_H

#include "grid/grid_answer.h"

/*
 * A provider of grid figures: a constant struct of functions in a file of its own, declared here
 * and named in the array of providers.c. It answers with series that are settled and in Flyball's
 * units, and states their kind; it never fills a gap.
 *
 * An online provider may wait for the network, at most for a request or two (online.h), unless
 * `cached_only` is set; code that runs during training sets it.
 */
struct grid_provider {
    const char *name;
    const char *place;   /* what the place means: "FILE" */
    const char *summary; /* a line for help */

    /*
     * Reads what there is. `out_answer` has to be freed only after success. FLY_ENOTFOUND, FLY_EREAD,
     * FLY_EDATA, FLY_ELIMIT, FLY_ENOMEM; online providers, the errors of online.h.
     */
    int (*read)(const struct grid_request *request, struct grid_answer *out_answer,
                struct fly_error *out_error);
};

extern const struct grid_provider grid_provider_carbon_aware;
extern const struct grid_provider grid_provider_constant;
extern const struct grid_provider grid_provider_csv;
extern const struct grid_provider grid_provider_electricity_maps;
extern const struct grid_provider grid_provider_gb;
extern const struct grid_provider grid_provider_watttime;

#endif

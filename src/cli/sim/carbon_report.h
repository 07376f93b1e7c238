/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_CARBON_REPORT_H
#define FLYBALL_CLI_SIM_CARBON_REPORT_H

#include "cli/frame/call.h"
#include "sim/carbon/carbon_campaign.h"
#include "sim/carbon/profile_source.h"

/* What `flyball sim carbon` found, and how it shows it. */
struct carbon_result {
    const struct carbon_campaign *campaign;
    const struct carbon_outcome *outcomes; /* by the campaign's policies, then by start */
    const struct profile_source *source;
    const char *profile; /* as the user named them; NULL for none */
    const char *intensity;
    const char *price;
    size_t shown; /* so many of the policies, the first ones */
    size_t max_policy, static_policy, mix_policy;
};

extern const struct quantities carbon_report_quantities;

int carbon_report_emit(const struct cli_call *call, const struct carbon_result *result,
                       struct fly_error *out_error);

/* Every job as a row of CSV. */
int carbon_report_write(const struct carbon_result *result, const char *path, struct fly_error *out_error);

#endif

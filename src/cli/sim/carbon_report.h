/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_CARBON_REPORT_H
#define FLYBALL_CLI_SIM_CARBON_REPORT_H

#include "cli/frame/call.h"
#include "sim/carbon/carbon_campaign.h"
#include "sim/carbon/profile_source.h"

/* The result of `flyball sim carbon`, and its output. */
struct carbon_result {
    const struct carbon_campaign *campaign;
    const struct carbon_outcome *outcomes; /* by the campaign's policies, then by start */
    const struct profile_source *source;
    const char *profile; /* texts as the user gave them; NULL for none */
    const char *intensity;
    const char *price;
    size_t shown; /* how many of the policies are shown, from the first */
    size_t max_policy, static_policy, mix_policy;
};

extern const struct quantities carbon_report_quantities;

int carbon_report_emit(const struct cli_call *call, const struct carbon_result *result,
                       struct fly_error *out_error);

/* Writes every job as a row of CSV. */
int carbon_report_write(const struct carbon_result *result, const char *path, struct fly_error *out_error);

#endif

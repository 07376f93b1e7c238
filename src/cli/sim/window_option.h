/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_WINDOW_OPTION_H
#define FLYBALL_CLI_SIM_WINDOW_OPTION_H

#include "cli/frame/call.h"

/* clang-format off */
#define SIM_OPTION_PROFILE_WINDOW \
    {.name = "profile-window", .type = CLI_TEXT, .placeholder = "SHARE", .key = "sim.profile_window", \
     .help = "Share of a batch size's first epoch that measuring its power limits takes, as 10%; a policy " \
             "that leaves the batch size after that pays no more. If not given, the whole epoch, as " \
             "published, and nothing for a try that is left."}
/* clang-format on */

/*
 * Reads --profile-window as a share, 0.1 for 10%: above 0 and at most 1, as
 * environment.profile_window. If it is not set, `out_share` stays as it is. FLY_EUSAGE.
 */
int window_option_read(const struct cli_call *call, double *out_share, struct fly_error *out_error);

#endif

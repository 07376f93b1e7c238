/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_SLOWDOWN_OPTION_H
#define FLYBALL_CLI_OPTIONS_SLOWDOWN_OPTION_H

#include "cli/frame/call.h"

/*
 * Read --max-slowdown as a factor, 1.03 for 3%, INFINITY for none, which the second refuses. If it is not
 * set, `out_factor` stays as it is. FLY_EUSAGE.
 */
int slowdown_option_read(const struct cli_call *call, double *out_factor, struct fly_error *out_error);
int slowdown_option_read_finite(const struct cli_call *call, double *out_factor, struct fly_error *out_error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_OBJECTIVE_OPTION_H
#define FLYBALL_CLI_SIM_OBJECTIVE_OPTION_H

#include <flyball/objective.h>

#include "cli/frame/call.h"

/*
 * Reads what simulated jobs make small, and within which bound: --objective, --max-slowdown and --eta,
 * which is another spelling of --objective cost:ETA. FLY_EUSAGE.
 */
int objective_option_read(const struct cli_call *call, struct fly_objective *out_objective,
                          struct fly_error *out_error);

#endif

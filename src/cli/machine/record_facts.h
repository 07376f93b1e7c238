/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_RECORD_FACTS_H
#define FLYBALL_CLI_MACHINE_RECORD_FACTS_H

#include "cli/frame/call.h"

/* `flyball record --facts FILE`: shows what the machine says of itself, and writes it when told to. */
int record_facts(const struct cli_call *call, const char *path, struct fly_error *out_error);

#endif

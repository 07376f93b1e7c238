/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_RECORD_FACTS_H
#define FLYBALL_CLI_MACHINE_RECORD_FACTS_H

#include "cli/frame/call.h"

/* Runs `flyball record --facts FILE`: shows the machine's facts, and writes them if told to. */
int record_facts(const struct cli_call *call, const char *path, struct fly_error *out_error);

#endif

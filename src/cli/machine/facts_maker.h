/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_FACTS_MAKER_H
#define FLYBALL_CLI_MACHINE_FACTS_MAKER_H

#include "cli/frame/call.h"
#include "device/recording/facts.h"

/*
 * Collects facts of this machine. Sets nothing, and watches the devices for about a second.
 *
 *     code = facts_make(call, &list, &facts, out_error);
 *     ...
 *     facts_free(facts);
 */
int facts_make(const struct cli_call *call, const struct device_list *list, struct facts **out_facts,
               struct fly_error *out_error);

#endif

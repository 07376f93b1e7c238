/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_LEFTOVERS_H
#define FLYBALL_CLI_OPTIONS_LEFTOVERS_H

#include "cli/frame/call.h"
#include "device/device.h"

/*
 * Puts back what sessions left on GPUs that were killed together with their guards: at
 * the start of every command that opens GPUs (cli_open_devices calls this), and when the
 * program of `flyball run` has ended.
 *
 * Without an entry in the journal this looks at one directory and is done. What was put
 * back is said in a line each, and what could not be in one line for all of them. What
 * was set to stay is left, and so is everything while the operator's lock is there.
 */
enum leftovers_wait {
    LEFTOVERS_AT_ONCE,    /* GPUs on which somebody is at work are left to him */
    LEFTOVERS_AFTER_GUARD /* of sessions that died, guards at work are waited for, two seconds at most */
};

void leftovers_repair(const struct cli_call *call, const struct device_list *list, enum leftovers_wait wait);

#endif

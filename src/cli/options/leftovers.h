/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_LEFTOVERS_H
#define FLYBALL_CLI_OPTIONS_LEFTOVERS_H

#include "cli/frame/call.h"
#include "device/device.h"

/*
 * Restores what sessions left on GPUs when they were killed together with their guards.
 * cli_open_devices calls this, so it runs at the start of every command that opens GPUs; `flyball
 * run` calls it again when its program has ended.
 *
 * If the journal has no entry, this looks at one directory and returns. It prints a line for each
 * setting that it restored, and one line for all that it could not. It leaves settings that are
 * meant to stay, and it leaves everything while the operator's lock is there.
 */
enum leftovers_wait {
    LEFTOVERS_AT_ONCE,    /* leaves GPUs that somebody is using */
    LEFTOVERS_AFTER_GUARD /* waits up to two seconds for guards at work, of sessions that died */
};

void leftovers_repair(const struct cli_call *call, const struct device_list *list, enum leftovers_wait wait);

#endif

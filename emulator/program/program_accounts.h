/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_PROGRAM_PROGRAM_ACCOUNTS_H
#define FLYBALL_EMULATOR_PROGRAM_PROGRAM_ACCOUNTS_H

#include <jansson.h>

#include "emulator/account.h"
#include "emulator/state.h"

/*
 * Adds to a GPU's object who drew what: "true_idle_w", "true_vacant_j", "true_other_j" (loads without a
 * process, and works that are no longer known), and "works", one object for each. Pids are those of each
 * process's own pid namespace.
 */
void program_put_accounts(json_t *gpu, const struct emulator_state *state, double idle_w,
                          const struct emulator_accounts *accounts);

#endif

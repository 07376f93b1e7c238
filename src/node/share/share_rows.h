/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_ROWS_H
#define FLYBALL_NODE_SHARE_SHARE_ROWS_H

#include "node/share/share_ledger.h"

/* Between the files of a ledger. Rows are made if need be; without room they are those of others. */
struct ledger_row *ledger_row_of(struct ledger *ledger, uint64_t process);
struct ledger_row *ledger_set_of(struct ledger *ledger, const uint64_t *processes, size_t count);

#endif

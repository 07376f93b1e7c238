/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_RESTORE_H
#define FLYBALL_STORE_STORE_RESTORE_H

#include "store/store_copy.h"

/*
 * Makes the store at `address` what the copy `path` is: in one transaction, so that after a
 * failure or a crash it is what it was. Logs of an earlier file of its name are not taken in.
 * FLY_EDATA: `path` is no copy of a store, or has a log beside it. FLY_EREAD: it is damaged.
 * FLY_ECONFLICT: there is a store, and `replace` was not said. FLY_EBUSY: somebody has it open.
 * A store that is too damaged to be written is moved to "<store>.damaged" first.
 */
int store_restore(const char *path, const char *address, bool replace, struct store_copied *out_copied,
                  struct fly_error *out_error);

#endif

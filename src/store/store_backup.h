/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_BACKUP_H
#define FLYBALL_STORE_STORE_BACKUP_H

#include "store/store_copy.h"

/*
 * Writes the store, as it is at one moment, to a new file `path` with mode 0600. The store may be
 * in use, and nobody has to wait. The file is complete and needs no other file beside it. It gets
 * its name only once it is checked and on disk, so a failure leaves no such file. FLY_ECONFLICT:
 * a file of that name exists. FLY_ENOTFOUND: there is no such store.
 */
int store_back_up(const char *address, const char *path, struct store_copied *out_copied,
                  struct fly_error *out_error);

/*
 * Gives the store at `address` the content of the copy `path`: in one transaction, so that after
 * a failure or a crash the store is unchanged. Logs of an earlier file of its name are ignored.
 * FLY_EDATA: `path` is no copy of a store, or has a log beside it. FLY_EREAD: it is damaged.
 * FLY_ECONFLICT: a store exists, and `replace` is not set. FLY_EBUSY: somebody has it open. A
 * store that is too damaged to be written is first moved to "<store>.damaged".
 */
int store_restore(const char *path, const char *address, bool replace, struct store_copied *out_copied,
                  struct fly_error *out_error);

#endif

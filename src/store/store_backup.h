/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_BACKUP_H
#define FLYBALL_STORE_STORE_BACKUP_H

#include "store/store_copy.h"

/*
 * Writes the store, as it is at one moment, to a new file `path` with mode 0600. The store may be
 * in use, and nobody waits. The file is whole and nothing stands beside it, it is checked and on
 * disk before it has its name, and what failed leaves no such file. FLY_ECONFLICT: there
 * is a file of that name. FLY_ENOTFOUND: there is no such store.
 */
int store_back_up(const char *address, const char *path, struct store_copied *out_copied,
                  struct fly_error *out_error);

#endif

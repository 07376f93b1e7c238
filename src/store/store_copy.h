/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_COPY_H
#define FLYBALL_STORE_STORE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * A copy of a store in a file, and a store made from it. SQLite keeps a part of a store
 * in a log beside the file, and takes a log that it finds there for the file's own:
 * so copying files by hand can mix two stores. These two cannot.
 *
 * `address` is that of store_open; a server's is FLY_EUNSUPPORTED with what to do there.
 */
struct store_copied {
    uint64_t jobs, events; /* in the copy */
};

/*
 * Writes the store, as it is at one moment, to a new file `path` with mode 0600. The store may be
 * in use, and nobody waits. The file is whole and nothing stands beside it, it is checked and on
 * disk before it has its name, and what failed leaves no such file. FLY_ECONFLICT: there
 * is a file of that name. FLY_ENOTFOUND: there is no such store.
 */
int store_back_up(const char *address, const char *path, struct store_copied *out_copied,
                  struct fly_error *out_error);

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

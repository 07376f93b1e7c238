/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_COPY_H
#define FLYBALL_STORE_STORE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * A copy of a store in a file, and a store made from such a copy. SQLite keeps a part of a store
 * in a log beside the file, and treats any log that it finds there as the file's own. So copying
 * files by hand can mix two stores; store_backup.h cannot.
 *
 * `address` is as in store_open; a server's is FLY_EUNSUPPORTED, with what to do there.
 */
struct store_copied {
    uint64_t jobs, events; /* in the copy */
};

#endif

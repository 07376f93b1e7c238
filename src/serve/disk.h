/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_DISK_H
#define FLYBALL_SERVE_DISK_H

#include <sys/types.h>

#include <flyball/error.h>

/*
 * Whether something could be written now where the store lies: a file without a name gets a
 * MiB, and is gone again, so full disks, quotas, and file systems that turned read-only show.
 * `store` is the address as for store_open. FLY_EWRITE says why not; FLY_EUNSUPPORTED: it lies on
 * a database server, whose disk cannot be seen from here. May block as long as that disk does. Thread-safe.
 */
int disk_check(const char *store, struct fly_error *out_error);

/*
 * The file that is the store now, held so that its number stays its own; disk_release gives it back.
 * FLY_EUNREACHABLE: there is none; FLY_EUNSUPPORTED: the store lies on a database server.
 */
struct disk_file {
    int fd; /* of O_PATH, whose end drops nobody's locks; -1: none */
    dev_t device;
    ino_t inode;
};
int disk_hold_store(const char *store, struct disk_file *out_file, struct fly_error *out_error);
void disk_release(struct disk_file *file);

/* 0 while the store is that file; FLY_EUNREACHABLE: none is there, or another. */
int disk_is_store(const char *store, const struct disk_file *file, struct fly_error *out_error);

#endif

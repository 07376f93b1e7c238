/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_DISK_H
#define FLYBALL_SERVE_DISK_H

#include <sys/types.h>

#include <flyball/error.h>

/*
 * Checks whether the store's disk accepts data: it writes a MiB to a file without a name, which
 * vanishes again. So it notices full disks, quotas, and file systems that turned read-only.
 * `store` is an address as for store_open. FLY_EWRITE says why not; FLY_EUNSUPPORTED: the store
 * lies on a database server, whose disk cannot be seen from here. May block as long as that disk
 * does. Thread-safe.
 */
int disk_check(const char *store, struct fly_error *out_error);

/*
 * The file that holds the store now, held open so that its inode number is not used again.
 * disk_release gives it back. FLY_EUNREACHABLE: there is no such file; FLY_EUNSUPPORTED: the
 * store lies on a database server.
 */
struct disk_file {
    int fd; /* opened with O_PATH, so that closing it drops nobody's locks; -1: none */
    dev_t device;
    ino_t inode;
};
int disk_hold_store(const char *store, struct disk_file *out_file, struct fly_error *out_error);
void disk_release(struct disk_file *file);

/* Returns 0 while that file holds the store; FLY_EUNREACHABLE: no file is there, or another one. */
int disk_is_store(const char *store, const struct disk_file *file, struct fly_error *out_error);

#endif

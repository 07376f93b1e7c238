/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_SQLITE_FILE_H
#define FLYBALL_STORE_SQLITE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/file/file_system.h"

/*
 * The file of a store before SQLite opens it: where it lies, that it exists with mode 0600, that
 * it lies on a local file system, and which process holds it.
 */
struct sqlite_file {
    char path[PATH_MAX]; /* absolute, without symbolic links */
    dev_t device;
    ino_t inode;
};

/*
 * Finds the file at `path` (NULL: the user's own file, with its directories of mode 0700), and
 * makes it if it is missing. FLY_EUNSUPPORTED on a network file system, with alternatives;
 * FLY_ESTATE in a fork of a process that has the file open; FLY_ENOTFOUND, FLY_EPERM, FLY_EWRITE,
 * FLY_EDATA, FLY_ELIMIT. Give the file back with sqlite_file_release. With `existing` nothing is
 * made, and a missing or empty file is FLY_ENOTFOUND. Thread-safe.
 */
int sqlite_file_take(const char *path, bool existing, const struct file_system_source *source,
                     struct sqlite_file *out_file, struct fly_error *out_error);
void sqlite_file_release(const struct sqlite_file *file);

/*
 * Gives the absolute path where the file is, or would be. Makes the user's own directories, but
 * not the file. Errors as above.
 */
int sqlite_file_place(const char *path, const struct file_system_source *source, char out_path[PATH_MAX],
                      struct fly_error *out_error);

/* Returns FLY_ENOTFOUND with its text. */
int sqlite_file_missing(const char *path, struct fly_error *out_error);

/* Returns whether the path still names the file that was taken. */
bool sqlite_file_stands(const struct sqlite_file *file);

/* What a user can do if a file system cannot hold a store. */
#define STORE_WAYS_OUT                                                               \
    "name a file on a local disk, or let a service ('flyball serve') or PostgreSQL " \
    "('postgresql://...') keep the logs of several machines"

#endif

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
 * it lies on a local file system, and which process has it open.
 *
 * A process that is forked while SQLite has a file open inherits SQLite's list of open files, whose locks are
 * the parent's: there it must not find the file again (sqlite_link.c). So the files that are open are noted
 * in a list, whose lock is never held over a call that may wait: a disk that does not answer stops no fork.
 */
struct sqlite_file {
    char path[PATH_MAX]; /* absolute, without symbolic links */
    dev_t device;
    ino_t inode;
    bool held; /* it is noted as open */
};

/*
 * Finds the file at `path` (NULL: the user's own file, with its directories of mode 0700), and
 * makes it if it is missing. FLY_EUNSUPPORTED on a network file system, with alternatives;
 * FLY_ENOTFOUND, FLY_EPERM, FLY_EWRITE, FLY_EDATA, FLY_ELIMIT. With `existing` nothing is made, and a missing
 * or empty file is FLY_ENOTFOUND. Thread-safe.
 */
int sqlite_file_take(const char *path, bool existing, const struct file_system_source *source,
                     struct sqlite_file *out_file, struct fly_error *out_error);

/*
 * Notes the file as open. Call it when SQLite has opened it and before the first statement, which locks it;
 * give it back with sqlite_file_release, when SQLite has closed it. Returns 0 or FLY_ENOMEM.
 */
int sqlite_file_hold(struct sqlite_file *file, struct fly_error *out_error);
void sqlite_file_release(struct sqlite_file *file);

/* Returns whether a process from which this one was forked had the file open then. */
bool sqlite_file_of_parent(dev_t device, ino_t inode);

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

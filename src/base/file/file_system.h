/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_FILE_FILE_SYSTEM_H
#define FLYBALL_BASE_FILE_FILE_SYSTEM_H

#include <stddef.h>

#include <flyball/error.h>

struct statfs;

/*
 * Finds what kind of file system a path lies on: a local one, or one shared with other machines,
 * where locks and shared memory between programs are not reliable.
 */

/* Returns the name of a network file system by statfs's number, "NFS"; NULL for a local one. */
const char *file_system_network(long type);

enum { FILE_SYSTEM_NAME_MAX = 64 };

/* Where the facts come from; NULL: from the machine itself. Tests replace them. */
struct file_system_source {
    int (*statfs)(const char *path, struct statfs *out_status);
    const char *mountinfo; /* path of a file like /proc/self/mountinfo */
};

/*
 * Gives the name of the network file system that an existing path lies on, "NFS" or "fuse.sshfs";
 * "" for a local one. FUSE serves both kinds under one number, so the list of mounts decides: a
 * type that is not known to be local counts as network. `source` may be NULL. FLY_EREAD,
 * FLY_EPERM or FLY_ENOTFOUND for the path.
 */
int file_system_find_network(const char *path, const struct file_system_source *source,
                             char out_name[FILE_SYSTEM_NAME_MAX], struct fly_error *out_error);

/*
 * Copies the next field of a line of a mountinfo file, which ends at a blank or at the line's
 * end, with octal escapes decoded and cut to `size`; returns where it ended. Pure.
 */
const char *file_system_field(const char *text, char *out, size_t size);

/*
 * Gives the type of the mount that holds an absolute path without symbolic links, from the text
 * of a mountinfo file: the longest mount point that contains it; among equals the later one. ""
 * if there is none; longer names are cut. Pure.
 */
void file_system_mount_type(const char *mountinfo, const char *path, char out_type[FILE_SYSTEM_NAME_MAX]);

#endif

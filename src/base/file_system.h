/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_FILE_SYSTEM_H
#define FLYBALL_BASE_FILE_SYSTEM_H

#include <stddef.h>

#include <flyball/error.h>

struct statfs;

/*
 * On what kind of file system a path lies: a local one, or one that other machines
 * see too, where locks and shared memory between programs cannot be relied on.
 */

/* The name of a network file system by statfs's number, "NFS", or NULL for a local one. */
const char *file_system_network(long type);

enum { FILE_SYSTEM_NAME_MAX = 64 };

/* Who says so; a NULL stands for the machine's own. Tests put others in their place. */
struct file_system_source {
    int (*statfs)(const char *path, struct statfs *out_status);
    const char *mountinfo; /* path of a file as /proc/self/mountinfo */
};

/*
 * The name of the network file system that an existing path lies on, "NFS" or
 * "fuse.sshfs"; "" for a local one. FUSE serves both kinds under one number, so
 * that the list of mounts says which: what is not known to be local is not.
 * `source` may be NULL. FLY_EREAD, FLY_EPERM or FLY_ENOTFOUND for the path.
 */
int file_system_find_network(const char *path, const struct file_system_source *source,
                             char out_name[FILE_SYSTEM_NAME_MAX], struct fly_error *out_error);

/*
 * The next field of a line of a mountinfo file, ended by a blank or the line's end, with octal
 * escapes undone and cut to `size`; returns where it ended. Pure.
 */
const char *file_system_field(const char *text, char *out, size_t size);

/*
 * The type of the mount that an absolute path without symbolic links lies on, from
 * the text of a mountinfo file: the longest mount point that holds it, the later of
 * equals. "" where there is none; longer names are cut. Pure.
 */
void file_system_mount_type(const char *mountinfo, const char *path, char out_type[FILE_SYSTEM_NAME_MAX]);

#endif

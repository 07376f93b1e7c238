/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_SYSFS_H
#define FLYBALL_DEVICE_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/*
 * Reads the kernel's small text files under /sys and /proc, or under another root from the
 * options: a host's tree mounted into a container, or an artificial one.
 *
 * Functions that read return a length or 0, or a negative errno. Thread-safe.
 */
enum { SYSFS_PATH_MAX = 512, SYSFS_TEXT_MAX = 64 };

/* Writes what precedes "/sys" into `root`: "" or the options' root without its final slashes. */
void sysfs_root(const struct device_options *options, char root[SYSFS_PATH_MAX]);

/* Joins a path; false, and `path` empty, if it does not fit. */
__attribute__((format(printf, 2, 3))) bool sysfs_path(char path[SYSFS_PATH_MAX], const char *format, ...);

/*
 * Reads the first line of a file, or of an open descriptor from its beginning, without the
 * newline. Refuses longer ones with -EMSGSIZE, and those with a NUL with -EBADMSG.
 */
int sysfs_read_text(const char *path, char *text, size_t size);
int sysfs_pread_text(int file, char *text, size_t size);

/* Reads the line as a number without a sign, at most `maximum`; -EBADMSG for anything else. */
int sysfs_read_u64(const char *path, uint64_t maximum, uint64_t *out_value);
int sysfs_pread_u64(int file, uint64_t maximum, uint64_t *out_value);

/*
 * Calls `visit` for each entry PREFIX<digits> of a directory, in the order of the numbers, until
 * it returns non-zero. Returns what it returned last; 0 without entries, or if the directory
 * cannot be read.
 */
int sysfs_each_numbered(const char *directory, const char *prefix,
                        int (*visit)(void *data, const char *path, unsigned number), void *data);

/* Returns a reading whose state follows from an errno. */
struct reading sysfs_failed_reading(int error);

#endif

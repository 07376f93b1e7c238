/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_FILE_APPEND_FILE_H
#define FLYBALL_BASE_FILE_APPEND_FILE_H

#include <stddef.h>

/*
 * Appends lines to a file that was opened with O_APPEND: all of them, or none, also on a disk that is full.
 * Returns 0, or the error's number.
 *
 * What a write has left of a line is cut off again. Where that cannot be done (another program has appended
 * meanwhile, or the file may only grow), or a program died within a line, the next call ends that line first,
 * so that it spoils no other; for this the file must be open for reading, too. Pipes and devices just get the
 * bytes. A file that may not grow further (RLIMIT_FSIZE) is an error only for who ignores SIGXFSZ.
 */
int append_file_lines(int fd, const char *lines, size_t length);

#endif

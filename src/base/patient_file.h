/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_PATIENT_FILE_H
#define FLYBALL_BASE_PATIENT_FILE_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * Files that a user names, opened without waiting for ever: a named pipe may have
 * nobody at its other end, or somebody who is silent, and some devices never end.
 *
 * A pipe gets PATIENT_OPEN_S for the other end to come and PATIENT_SILENT_S for it
 * to go on. Devices but terminals and /dev/null, sockets and directories are not
 * read. On failure errno says what happened; patient_file_cause() has the words.
 * Thread-safe.
 */
enum { PATIENT_OPEN_S = 10, PATIENT_SILENT_S = 60 };

/* To read, as fopen(path, "re"); NULL with errno. What is silent too long is a read error, ETIME. */
FILE *patient_file_read(const char *path);

/*
 * Appends all of a file, or of standard input for "-". FLY_ELIMIT as soon as there is
 * more than the buffer takes; FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD, FLY_ENOMEM.
 */
int patient_file_read_all(const char *path, struct buffer *text, struct fly_error *out_error);

/*
 * To write what stands at the path already, in place; a descriptor, or -1 with
 * errno. A pipe's does not block: patient_file_wait() is for its EAGAIN.
 */
int patient_file_write(const char *path);

/* Waits until a descriptor that does not block takes more; 0, or -1 with errno, ETIME when nothing moved. */
int patient_file_wait(int fd);

/* strerror() with better words for what the above meet: "nobody is at the other end of this pipe". */
const char *patient_file_cause(int error);

#endif

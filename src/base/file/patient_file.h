/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_FILE_PATIENT_FILE_H
#define FLYBALL_BASE_FILE_PATIENT_FILE_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * Opens files that a user names without waiting for ever: a named pipe may have nobody at its
 * other end, or somebody who stays silent, and some devices never end.
 *
 * A pipe gets PATIENT_OPEN_S for the other end to open it and PATIENT_SILENT_S for each further
 * piece. Devices other than terminals and /dev/null, sockets and directories are not read. On
 * failure errno says what happened; patient_file_cause() puts it into words. Thread-safe.
 */
enum { PATIENT_OPEN_S = 10, PATIENT_SILENT_S = 60 };

/*
 * Opens a file to read, as fopen(path, "re"); NULL with errno. A pipe that is silent too long
 * gives a read error, ETIME.
 */
FILE *patient_file_read(const char *path);

/*
 * Appends all of a file, or of standard input for "-". FLY_ELIMIT as soon as there is more than
 * the buffer takes; FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD, FLY_ENOMEM.
 */
int patient_file_read_all(const char *path, struct buffer *text, struct fly_error *out_error);

/*
 * Opens what exists at the path to write it in place; returns a descriptor, or -1 with errno.
 * That of a pipe does not block: on EAGAIN call patient_file_wait().
 */
int patient_file_write(const char *path);

/* Waits until a non-blocking descriptor takes more; returns 0, or -1 with errno: ETIME if nothing moved. */
int patient_file_wait(int fd);

/*
 * Returns strerror(), or better words for errors of the functions above: "nobody is at the other
 * end of this pipe".
 */
const char *patient_file_cause(int error);

#endif

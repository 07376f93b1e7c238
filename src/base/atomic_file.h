/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ATOMIC_FILE_H
#define FLYBALL_BASE_ATOMIC_FILE_H

#include <stdio.h>

#include <flyball/error.h>

/*
 * A file that appears whole or not at all.
 *
 * What is written goes to a nameless file beside the target (a temporary name,
 * ".flyball-<pid>-<n>", where the file system has no O_TMPFILE); commit brings
 * it to the disk and renames it over the target. A full disk or a discard
 * leaves an existing target as it was and nothing else behind. The target keeps
 * its permissions; a new one gets what the umask allows. A symbolic link is
 * followed. A device, pipe or socket is written directly, and so is whatever
 * stdout goes to; what reached those cannot be taken back. A named pipe that nobody
 * reads is an error after a while (base/patient_file.h).
 *
 *     struct atomic_file file;
 *     int result = atomic_file_open("tries.csv", &file, out_error);
 *
 *     if (result < 0)
 *         return result;
 *     fprintf(file.stream, "...");
 *     return atomic_file_commit(&file, out_error);
 *
 * Write errors may be left to commit, which reports the cause of the first. A
 * program that wants "file too large" as an error ignores SIGXFSZ. Not
 * thread-safe.
 */
struct atomic_file {
    FILE *stream;             /* to write to; owned */
    char *path;               /* of the target as the caller named it; owned */
    char *target;             /* with symbolic links followed; owned; NULL: written directly */
    char *temporary;          /* name of the file while it has one; owned, or NULL */
    struct atomic_sink *sink; /* behind the stream; owned */
};

/* Errors (all functions): FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND (no such directory), FLY_ENOMEM. */
int atomic_file_open(const char *path, struct atomic_file *out_file, struct fly_error *out_error);

/* Makes the content the target's; on failure discards it. Ends the use of `file` either way. */
int atomic_file_commit(struct atomic_file *file, struct fly_error *out_error);

/* Forgets the content. Harmless after commit and on a zeroed struct. */
void atomic_file_discard(struct atomic_file *file);

#endif

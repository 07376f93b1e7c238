/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_FILE_ATOMIC_FILE_H
#define FLYBALL_BASE_FILE_ATOMIC_FILE_H

#include <stdio.h>

#include <flyball/error.h>

/*
 * A file that appears whole or not at all.
 *
 * The content is written to a nameless file beside the target (or one with a temporary name,
 * ".flyball-<pid>-<n>", if the file system has no O_TMPFILE). Commit brings it to the disk and
 * renames it over the target. After a full disk or a discard an existing target is unchanged and
 * nothing else is left behind. The target keeps its permissions; a new one gets what the umask
 * allows. A symbolic link is followed. A device, pipe or socket is written directly, and so is
 * the file that stdout writes to; what was written to those cannot be undone. A named pipe that
 * nobody reads is an error after a while (base/file/patient_file.h).
 *
 *     struct atomic_file file;
 *     int result = atomic_file_open("tries.csv", &file, out_error);
 *
 *     if (result < 0)
 *         return result;
 *     fprintf(file.stream, "...");
 *     return atomic_file_commit(&file, out_error);
 *
 * You may ignore write errors until commit, which reports the cause of the first. A program that
 * wants "file too large" as an error must ignore SIGXFSZ. For one thread at a time; other threads may
 * write other files meanwhile.
 */
struct atomic_file {
    FILE *stream;             /* to write to; owned */
    char *path;               /* of the target, as the caller wrote it; owned */
    char *target;             /* the same with symbolic links followed; owned; NULL: written directly */
    char *temporary;          /* name of the file if it has one; owned, or NULL */
    struct atomic_sink *sink; /* behind the stream; owned */
};

/*
 * Opens a file for the target `path`. Errors (all functions): FLY_EWRITE, FLY_EPERM,
 * FLY_ENOTFOUND (no such directory), FLY_ENOMEM.
 */
int atomic_file_open(const char *path, struct atomic_file *out_file, struct fly_error *out_error);

/* Makes the content that of the target; on failure discards it. `file` cannot be used after either. */
int atomic_file_commit(struct atomic_file *file, struct fly_error *out_error);

/* Discards the content. Harmless after commit and on a zeroed struct. */
void atomic_file_discard(struct atomic_file *file);

#endif

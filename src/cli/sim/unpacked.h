/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_UNPACKED_H
#define FLYBALL_CLI_SIM_UNPACKED_H

#include <stdio.h>

#include "base/error.h"

/*
 * A file to be read from the start or anywhere, and by several readers at once,
 * also where it is compressed with xz: then its content is unpacked to a
 * nameless temporary file first (in $TMPDIR, or /tmp).
 *
 *     struct unpacked file;
 *     unpacked_open(&file, "groups.csv.xz", out_error);
 *     fopen(file.path, "re") ...
 *     unpacked_close(&file);
 */
struct unpacked {
    char path[64];    /* what to open, when it was unpacked */
    const char *open; /* path, or the caller's own */
    FILE *temporary;  /* owned, or NULL */
};

/*
 * By the ending ".xz". FLY_EDATA with the line that was reached for a file that
 * ends early or is damaged, FLY_ENOTFOUND, FLY_EREAD, FLY_EWRITE, FLY_ENOMEM.
 */
int unpacked_open(struct unpacked *file, const char *path, struct fly_error *out_error);
void unpacked_close(struct unpacked *file);

#endif

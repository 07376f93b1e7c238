/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_UNPACKED_H
#define FLYBALL_CLI_SIM_UNPACKED_H

#include <stdio.h>

#include "base/error.h"

/*
 * A file that can be read from the start or anywhere, and by several readers at once, even if it
 * is compressed with xz: then its content is first unpacked to a nameless temporary file (in
 * $TMPDIR, or /tmp).
 *
 *     struct unpacked file;
 *
 *     unpacked_open(&file, "groups.csv.xz", out_error);
 *     fopen(file.path, "re") ...
 *     unpacked_close(&file);
 */
struct unpacked {
    char path[64];    /* what to open, if it was unpacked */
    const char *open; /* path, or the caller's own */
    FILE *temporary;  /* owned, or NULL */
};

/*
 * Decides by the ending ".xz". FLY_EDATA, with the last line that was read, for a file that ends
 * early or is damaged; FLY_ENOTFOUND, FLY_EREAD, FLY_EWRITE, FLY_ENOMEM.
 */
int unpacked_open(struct unpacked *file, const char *path, struct fly_error *out_error);
void unpacked_close(struct unpacked *file);

#endif

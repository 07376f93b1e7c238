/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_OPEN_VISIBLE_LIST_H
#define FLYBALL_DEVICE_OPEN_VISIBLE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The text of CUDA_VISIBLE_DEVICES and its like, entry by entry. Pure.
 *
 *     struct visible_entry entry;
 *
 *     for (const char *rest = text; visible_next(&rest, &entry);)
 *         ...
 *
 * The empty text has no entry, and nothing behind a final comma is none either.
 */
enum visible_kind {
    VISIBLE_INVALID,
    VISIBLE_INDEX,    /* "2" */
    VISIBLE_UUID,     /* "GPU-8932f937-...", or the beginning of one */
    VISIBLE_INSTANCE, /* "MIG-...", also the older "MIG-GPU-8932f937-.../1/0" */
};

struct visible_entry {
    enum visible_kind kind;
    bool exact;       /* an index that is digits and nothing else */
    uint64_t index;   /* of VISIBLE_INDEX */
    const char *text; /* as written, without blanks around it; borrows, not NUL-terminated */
    size_t length;
    const char *gpu_uuid; /* of VISIBLE_INSTANCE that names its GPU: the part of text that does; else NULL */
    size_t gpu_uuid_length;
};

/*
 * Reads the next entry and moves behind it; false at the end. Indices are what
 * strtol would read at the entry's beginning, as the driver seems to: "1gpu" is
 * 1, "-1" and "gpu" are invalid.
 */
bool visible_next(const char **rest, struct visible_entry *out_entry);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_OPEN_VISIBLE_LIST_H
#define FLYBALL_DEVICE_OPEN_VISIBLE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads the text of CUDA_VISIBLE_DEVICES and similar variables, entry by entry. Pure.
 *
 *     struct visible_entry entry;
 *
 *     for (const char *rest = text; visible_next(&rest, &entry);)
 *         ...
 *
 * The empty text has no entry, and there is none after a final comma.
 */
enum visible_kind {
    VISIBLE_INVALID,
    VISIBLE_INDEX,    /* "2" */
    VISIBLE_UUID,     /* "GPU-8932f937-...", or the beginning of one */
    VISIBLE_INSTANCE, /* "MIG-...", also the older "MIG-GPU-8932f937-.../1/0" */
};

struct visible_entry {
    enum visible_kind kind;
    bool exact;       /* the index consists of digits only */
    uint64_t index;   /* of VISIBLE_INDEX */
    const char *text; /* as written, without blanks around it; borrows, not NUL-terminated */
    size_t length;
    const char *gpu_uuid; /* with VISIBLE_INSTANCE, the part of text that names its GPU, if any; else NULL */
    size_t gpu_uuid_length;
};

/*
 * Reads the next entry and moves past it; false at the end. An index is what strtol would read at
 * the entry's beginning, as the driver seems to do: "1gpu" is 1, "-1" and "gpu" are invalid.
 */
bool visible_next(const char **rest, struct visible_entry *out_entry);

#endif

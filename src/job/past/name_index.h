/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_NAME_INDEX_H
#define FLYBALL_JOB_PAST_NAME_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Gives names numbers: each new pair of texts gets the next number, from 0, and keeps it.
 *
 *     struct name_index index;
 *
 *     name_index_init(&index, 1000);
 *     name_index_take(&index, "GPU-1", "", &number, out_error);
 *     ... index.entries[number].name ...
 *     name_index_deinit(&index);
 */
struct name_entry {
    const char *name, *detail; /* owned by the index */
};

struct name_index {
    struct arena arena;
    struct name_entry *entries; /* owned; ordered by number */
    size_t count, capacity, maximum;
    uint32_t *slots; /* owned; number + 1, or 0 */
    size_t slot_count;
};

void name_index_init(struct name_index *index, size_t maximum);
void name_index_deinit(struct name_index *index);

/* Stores the pair's number, a new one for a new pair. Returns FLY_ELIMIT beyond the maximum, FLY_ENOMEM. */
int name_index_take(struct name_index *index, const char *name, const char *detail, size_t *out_number,
                    struct fly_error *out_error);

/* Whether the pair has a number; stores it. */
bool name_index_find(const struct name_index *index, const char *name, const char *detail,
                     size_t *out_number);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/name_index.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_NAMES = 64, NAME_BYTES = 512, ARENA_EXTRA = 1 << 20 };

void name_index_init(struct name_index *index, size_t maximum)
{
    *index = (struct name_index){.maximum = maximum};
    arena_init(&index->arena, maximum * NAME_BYTES + ARENA_EXTRA);
}

void name_index_deinit(struct name_index *index)
{
    arena_deinit(&index->arena);
    free(index->entries);
    free(index->slots);
    index->entries = NULL;
    index->slots = NULL;
    index->count = index->capacity = index->slot_count = 0;
}

/* FNV-1a, with the NUL between the texts. */
static uint64_t mix(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    while (*text++ != '\0');
    return hash;
}

/* The slot of the pair, or the empty slot where it belongs; there always is one. */
static size_t slot_of(const struct name_index *index, const char *name, const char *detail)
{
    uint64_t hash = mix(mix(UINT64_C(14695981039346656037), name), detail);
    size_t slot = (size_t)(hash ^ hash >> 32) & (index->slot_count - 1);

    while (index->slots[slot] != 0) {
        const struct name_entry *entry = &index->entries[index->slots[slot] - 1];

        if (strcmp(entry->name, name) == 0 && strcmp(entry->detail, detail) == 0)
            break;
        slot = (slot + 1) & (index->slot_count - 1);
    }
    return slot;
}

bool name_index_find(const struct name_index *index, const char *name, const char *detail, size_t *out_number)
{
    size_t slot = index->slot_count > 0 ? slot_of(index, name, detail) : 0;

    if (index->slot_count == 0 || index->slots[slot] == 0)
        return false;
    *out_number = index->slots[slot] - 1;
    return true;
}

/* Doubles the room; slots are never more than half full. */
static bool grow(struct name_index *index)
{
    size_t capacity = index->capacity > 0 ? 2 * index->capacity : FIRST_NAMES;
    struct name_entry *entries = realloc(index->entries, capacity * sizeof entries[0]);
    uint32_t *slots = calloc(2 * capacity, sizeof slots[0]);

    if (entries != NULL)
        index->entries = entries;
    if (entries == NULL || slots == NULL) {
        free(slots);
        return false;
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = 2 * capacity;
    index->capacity = capacity;
    for (size_t i = 0; i < index->count; i++)
        slots[slot_of(index, entries[i].name, entries[i].detail)] = (uint32_t)i + 1;
    return true;
}

int name_index_take(struct name_index *index, const char *name, const char *detail, size_t *out_number,
                    struct fly_error *out_error)
{
    struct name_entry entry;

    if (name_index_find(index, name, detail, out_number))
        return 0;
    if (index->count == index->maximum)
        return error_set(out_error, FLY_ELIMIT, "more than %zu names, '%.100s' the next of them",
                         index->maximum, name);
    if (index->count == index->capacity && !grow(index))
        return error_no_memory(out_error);
    entry.name = arena_strdup(&index->arena, name);
    entry.detail = detail[0] != '\0' ? arena_strdup(&index->arena, detail) : "";
    if (entry.name == NULL || entry.detail == NULL)
        return error_no_memory(out_error);
    index->slots[slot_of(index, name, detail)] = (uint32_t)index->count + 1;
    index->entries[index->count] = entry;
    *out_number = index->count++;
    return 0;
}

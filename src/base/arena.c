/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Blocks grow with the arena, so that a small one holds little that it does not hand out. */
enum { LEAST_BLOCK = 512, MOST_BLOCK = 4096, GROWTH = 4 };

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *arena, size_t maximum)
{
    *arena = (struct arena){.maximum = maximum};
}

void arena_deinit(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *next = arena->blocks->next;

        free(arena->blocks);
        arena->blocks = next;
    }
    arena->used = 0;
}

static size_t arena_free_in(const struct arena_block *block)
{
    return block == NULL ? 0 : block->capacity - block->used;
}

static size_t arena_block_size(const struct arena *arena, size_t bytes)
{
    size_t size = arena->used / GROWTH;

    size = size < LEAST_BLOCK ? LEAST_BLOCK : size > MOST_BLOCK ? MOST_BLOCK : size;
    return bytes > size ? bytes : size;
}

/* The first block is the one to hand out from: a new one that leaves less than it comes behind. */
static struct arena_block *arena_block_for(struct arena *arena, size_t bytes)
{
    struct arena_block *first = arena->blocks, *block;
    size_t capacity = arena_block_size(arena, bytes);

    if (arena_free_in(first) >= bytes && first != NULL)
        return first;
    block = calloc(1, sizeof *block + capacity);
    if (block == NULL)
        return NULL;
    block->capacity = capacity;
    if (arena_free_in(first) > capacity - bytes) {
        block->next = first->next;
        first->next = block;
    } else {
        block->next = first;
        arena->blocks = block;
    }
    return block;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    struct arena_block *block;
    size_t bytes;
    void *piece;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > arena->maximum - arena->used)
        return NULL;
    bytes = (bytes + align - 1) / align * align;
    block = arena_block_for(arena, bytes);
    if (block == NULL)
        return NULL;
    piece = block->bytes + block->used;
    block->used += bytes;
    arena->used = bytes > arena->maximum - arena->used ? arena->maximum : arena->used + bytes;
    return piece;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size, 1);

    return copy == NULL ? NULL : memcpy(copy, text, size);
}

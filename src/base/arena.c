/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 4096 };

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

static struct arena_block *arena_block_for(struct arena *arena, size_t bytes)
{
    struct arena_block *block = arena->blocks;
    size_t capacity = bytes > BLOCK_SIZE ? bytes : BLOCK_SIZE;

    if (block != NULL && block->capacity - block->used >= bytes)
        return block;
    block = calloc(1, sizeof *block + capacity);
    if (block == NULL)
        return NULL;
    block->capacity = capacity;
    block->next = arena->blocks;
    arena->blocks = block;
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

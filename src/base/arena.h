/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ARENA_H
#define FLYBALL_BASE_ARENA_H

#include <stddef.h>

/*
 * Memory with one lifetime: an arena hands out pieces one after the other and frees them all at
 * once. Data that belongs together (a trace, the state of a run) lives in one arena, so nothing
 * is freed piece by piece and nothing leaks.
 *
 *     struct arena arena;
 *     arena_init(&arena, 64 << 20);
 *     double *cost_j = arena_alloc(&arena, count, sizeof *cost_j);
 *     if (cost_j == NULL) ...
 *     arena_deinit(&arena);
 *
 * Not thread-safe.
 */
struct arena_block;

struct arena {
    struct arena_block *blocks; /* owned */
    size_t used;                /* bytes handed out */
    size_t maximum;             /* bytes it may ever hand out */
};

void arena_init(struct arena *arena, size_t maximum);
void arena_deinit(struct arena *arena);

/*
 * Returns `count` zeroed elements of `size` bytes, aligned for any type; NULL if memory or the
 * maximum is exhausted or count * size overflows.
 */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/* Returns a copy of a string, or NULL. */
char *arena_strdup(struct arena *arena, const char *text);

#endif

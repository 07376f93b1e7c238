/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ARRAY_H
#define FLYBALL_BASE_ARRAY_H

#include <stddef.h>

/*
 * Returns `items`, moved where needed, with room for at least `count` + 1 items of `item_bytes` each, and
 * sets `*capacity` to the items that have room. Returns NULL without memory; `items` then stays valid.
 * The room doubles, so that adding n items one by one copies fewer than 2n. The caller limits `count`.
 *
 *     rows = array_grow(list->rows, list->count, &list->capacity, sizeof rows[0]);
 *     if (rows == NULL)
 *         return error_no_memory(out_error);
 *     list->rows = rows;
 *     list->rows[list->count++] = row;
 *
 * NULL with a capacity of 0 is an empty array; free() frees one.
 */
void *array_grow(void *items, size_t count, size_t *capacity, size_t item_bytes);

#endif

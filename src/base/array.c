/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_ITEMS = 16 };

void *array_grow(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    size_t wanted = *capacity > 0 ? *capacity : FIRST_ITEMS;
    void *grown;

    if (count < *capacity)
        return items;
    if (count >= SIZE_MAX / 2 / item_bytes)
        return NULL;
    while (wanted <= count)
        wanted *= 2;
    grown = reallocarray(items, wanted, item_bytes);
    if (grown != NULL)
        *capacity = wanted;
    return grown;
}
